"""How far a long loop is, and how long it will take: a live bar, or plain lines in a log file.

Not logging: what is shown here is nowhere kept.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

_EVERY_SECONDS = 5.0


class Bar(Protocol):
    """What `bar` yields."""

    def update(self, n: float, **postfix: Any) -> None:
        """Adds `n` done units; `postfix` is shown beside them."""


@contextmanager
def bar(total: float, what: str, unit: str, initial: float = 0) -> Iterator[Bar]:
    """Progress over `total` units on stderr.

    Args:
      total: units of work in all, those done before included.
      what: the name of the work.
      unit: the name of a unit, in the plural.
      initial: units done before; the estimate of the time left does not count them as work.
    """
    if not sys.stderr.isatty():
        lines = _Lines(total, what, unit, initial)
        yield lines
        lines.show()
        return
    from tqdm import tqdm

    with tqdm(total=total, desc=what, unit=" " + unit, initial=initial, smoothing=0.1) as live:
        yield _Live(live)


class _Live:
    def __init__(self, live: Any) -> None:
        self._live = live

    def update(self, n: float, **postfix: Any) -> None:
        if postfix:
            self._live.set_postfix(postfix, refresh=False)
        self._live.update(n)


class _Lines:
    def __init__(self, total: float, what: str, unit: str, initial: float) -> None:
        self._total, self._what, self._unit = total, what, unit
        self._initial = self._done = initial
        self._start = self._shown = time.monotonic()
        self._postfix: dict[str, Any] = {}

    def update(self, n: float, **postfix: Any) -> None:
        self._done += n
        self._postfix |= postfix
        if time.monotonic() - self._shown >= _EVERY_SECONDS:
            self.show()

    def show(self) -> None:
        self._shown = time.monotonic()
        elapsed = self._shown - self._start
        worked = self._done - self._initial
        left = _clock(elapsed * (self._total - self._done) / worked) if worked > 0 else "?"
        share = 100 * self._done / self._total if self._total else 100.0
        extra = "".join(f", {key} {item}" for key, item in self._postfix.items())
        print(
            f"{self._what}: {share:.0f}% ({self._done:g}/{self._total:g} {self._unit}), "
            f"{_clock(elapsed)} elapsed, {left} left{extra}",
            file=sys.stderr,
            flush=True,
        )


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hour, minute = divmod(minutes, 60)
    return f"{hour}:{minute:02d}:{second:02d}"
