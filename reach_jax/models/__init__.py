"""Frozen model configurations and thin linen modules over `reach_jax.ops`; `kinds` picks one."""
