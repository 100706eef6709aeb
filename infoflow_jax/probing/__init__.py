"""What a network's states really depend on, and how that agrees with the planner's sets."""
