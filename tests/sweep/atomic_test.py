"""Atomic files: old or new, under several writers, kill and a full disk."""

import errno
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sweep_jax import atomic

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from sweep_jax import atomic
path, letter = Path(sys.argv[1]), sys.argv[2].encode()
print("ready", flush=True)
while True:
    atomic.write_bytes(path, letter * 200_000)
"""


def start_writer(path: Path, letter: str) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), letter]
    writer = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT)
    assert writer.stdout.readline() == b"ready\n"
    return writer


def test_readers_and_killed_writers_see_whole_files(tmp_path):
    path = tmp_path / "file"
    atomic.write_bytes(path, b"a" * 200_000)
    choose = random.Random(0)
    for _ in range(10):
        writers = [start_writer(path, letter) for letter in "bc"]
        try:
            end = time.monotonic() + choose.uniform(0.005, 0.05)
            while time.monotonic() < end:
                data = path.read_bytes()
                assert len(data) == 200_000
                assert len(set(data)) == 1
        finally:
            for writer in writers:
                writer.send_signal(signal.SIGKILL)
                writer.communicate()
        data = path.read_bytes()
        assert len(data) == 200_000
        assert len(set(data)) == 1
    # Each killed writer leaves at most its one temporary file, which counts as stale later.
    assert len(list(tmp_path.iterdir())) <= 21
    atomic.remove_stale(tmp_path, seconds=-1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_young_temporary_files_stay(tmp_path):
    live, dead = tmp_path / "x.json.1.tmp", tmp_path / "y.json.2.tmp"
    for path in (live, dead):
        path.write_text("half")
    os.utime(dead, (time.time() - 7200,) * 2)
    atomic.remove_stale(tmp_path)
    assert live.exists()
    assert not dead.exists()


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_full_disk_keeps_the_old_version(tmp_path, monkeypatch, call):
    path = tmp_path / "file"
    atomic.write_text(path, "old")

    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        atomic.write_text(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_really_full_device(tmp_path, monkeypatch):
    path = tmp_path / "file"
    atomic.write_text(path, "old")
    temporary = tmp_path / f"file.{os.getpid()}.tmp"
    temporary.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        atomic.write_text(path, "new")
    assert path.read_text() == "old"
