"""Files to parameters, strictly: every tensor used once, every parameter set once."""
