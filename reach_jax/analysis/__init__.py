"""From thresholds to n50, slopes, intervals and figures. Imports no sibling."""
