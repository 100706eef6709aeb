"""Many networks trained at once."""
