"""Copying a string: the task, training many models at once, evaluation by real decoding."""
