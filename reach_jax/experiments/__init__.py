"""What `launch.py` can run: each module composes its siblings into one experiment."""
