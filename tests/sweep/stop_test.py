"""Stop: a signal is noted, the second Ctrl-C is not, and handlers are put back."""

import os
import signal
import threading

import pytest

from sweep_jax.stop import Stop, Stopped


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_noted(signum):
    before = signal.getsignal(signum)
    with Stop() as stop:
        assert not stop.requested
        os.kill(os.getpid(), signum)
        assert stop.requested
        assert stop.signum == signum
    assert signal.getsignal(signum) is before
    assert stop.requested


def test_the_second_interrupt_interrupts():
    before = signal.getsignal(signal.SIGINT)

    def interrupt_twice():
        with Stop():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        interrupt_twice()
    assert signal.getsignal(signal.SIGINT) is before


def test_inert_outside_the_main_thread():
    seen = []

    def work():
        with Stop() as stop:
            seen.append(stop.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


def test_stopped_says_what_to_do():
    with pytest.raises(Stopped, match="run the same command again"):
        raise Stopped("stopped after chunk 3; run the same command again to resume")
