"""How a sweep is expanded into cells, run, checkpointed, stored and reported. No science in here."""
