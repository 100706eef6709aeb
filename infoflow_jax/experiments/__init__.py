"""What `launch.py` can run about information flow: composes the rooms of `infoflow_jax`."""
