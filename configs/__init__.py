"""One file an experiment: `get_config(arg)` and `sweep(add, config)`."""
