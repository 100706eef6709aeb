"""Every prompt of a small finite-precision transformer, decoded; outputs counted exactly."""
