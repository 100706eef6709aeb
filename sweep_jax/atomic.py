"""Files that are either the old version or the new one, also under kill and a full disk.

Not a lock: of several writers of one file the last wins.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

from absl import logging

_SUFFIX = ".tmp"


def write_bytes(path: Path, data: bytes) -> None:
    """Replaces `path` by `data`, durably when it returns.

    Raises:
      OSError: the disk is full or the directory missing; `path` keeps its old content.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}{_SUFFIX}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_text(path: Path, text: str) -> None:
    """`write_bytes` of UTF-8 text."""
    write_bytes(path, text.encode())


def read_json(path: Path) -> Any | None:
    """What a JSON file holds; None if it is absent, or damaged, which a warning then names."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:  # not UTF-8, or not JSON
        logging.warning("%s counts as absent: %s", path, error)
        return None


def sync(path: Path) -> None:
    """Makes a file's content, or a directory's renames, survive a loss of power."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale(directory: Path, seconds: float = 3600.0) -> None:
    """Removes what killed writers left; what is younger than `seconds` may be a live writer's."""
    for temporary in directory.glob(f"*{_SUFFIX}"):
        try:
            if time.time() - temporary.stat().st_mtime > seconds:
                temporary.unlink()
        except FileNotFoundError:  # its writer, or another cleaner, was faster
            continue
