"""The figures of information flow: numbers in, a matplotlib figure out. Imports no sibling."""
