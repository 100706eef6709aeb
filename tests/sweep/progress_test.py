"""Progress: plain lines in a file, a bar on a terminal, and a fair estimate after a restart."""

import io
import sys

import pytest

from sweep_jax import progress


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


def test_lines(clock, capsys):
    with progress.bar(100, "train", "steps") as bar:
        for _ in range(4):
            clock.now += 3.0
            bar.update(10, loss=2.5)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "train: 20% (20/100 steps), 0:00:06 elapsed, 0:00:24 left, loss 2.5",
        "train: 40% (40/100 steps), 0:00:12 elapsed, 0:00:18 left, loss 2.5",
        "train: 40% (40/100 steps), 0:00:12 elapsed, 0:00:18 left, loss 2.5",
    ]


def test_resumed_work_is_not_counted_as_fast(clock, capsys):
    with progress.bar(100, "train", "steps", initial=90) as bar:
        clock.now += 7200.0
        bar.update(5)
    assert "95% (95/100 steps), 2:00:00 elapsed, 2:00:00 left" in capsys.readouterr().err


def test_nothing_to_do(clock, capsys):
    with progress.bar(0, "train", "steps"):
        pass
    assert "100%" in capsys.readouterr().err


def test_bar_on_a_terminal(monkeypatch):
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.bar(10, "train", "steps", initial=5) as bar:
        bar.update(5, loss=2.5)
    assert "train: 100%" in terminal.getvalue()
    assert "10/10" in terminal.getvalue()
    assert "loss=2.5" in terminal.getvalue()
