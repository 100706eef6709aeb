"""One process at a time in a directory. The lock dies with its process, kill -9 included.

Not for networked file systems that do not honour `flock`.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from absl import logging


@contextmanager
def held(directory: Path) -> Iterator[None]:
    """Makes the directory if need be and holds its lock, after waiting for who has it."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory.with_name(directory.name + ".lock"), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            logging.warning("waiting for another process that works on %s", directory.name)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
