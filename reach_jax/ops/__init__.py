"""The mathematics of the models: arrays in, arrays out. No parameters, no configuration."""
