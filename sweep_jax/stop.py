"""A signal to stop, seen by the loop between two chunks of work instead of in their middle.

Not a timeout, and nothing here saves: the loop that sees `requested` does, and raises `Stopped`.
"""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Stopped(Exception):
    """Work ended early on request; the text says how far it came and how to go on."""


class Stop:
    """Context in which SIGTERM and SIGINT only set `requested`; a second SIGINT interrupts.

    Outside the main thread, where Python takes no handlers, it does nothing.

    Attributes:
      requested: a signal came.
      signum: which one, or None.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self._old: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        """Whether to stop at the next safe point."""
        return self.signum is not None

    def __enter__(self) -> "Stop":
        if threading.current_thread() is threading.main_thread():
            for signum in (signal.SIGTERM, signal.SIGINT):
                self._old[signum] = signal.signal(signum, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for signum, handler in self._old.items():
            signal.signal(signum, handler)
        self._old.clear()

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if signum == signal.SIGINT and self.signum == signal.SIGINT:
            raise KeyboardInterrupt
        self.signum = signum
