"""How a sweep is expanded, run, checkpointed, stored and reported. No science in here."""
