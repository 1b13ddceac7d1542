"""Ends a command that is interrupted (SIGINT) or asked to end (SIGTERM) quietly, with what it began cleaned up."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_STOPPING = (signal.SIGINT, signal.SIGTERM)
_ANSWERED = (signal.SIG_DFL, signal.default_int_handler)
"""Handlers that a process has unless somebody chose others: those are left alone, as is a signal that is ignored."""


def leave_at_once() -> None:
    """Let SIGINT end the process without a word: for the time of imports, when there is nothing to clean up."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


@contextmanager
def stoppable(came: list[int]) -> Iterator[None]:
    """Turn the first such signal into ``KeyboardInterrupt``, so that everything cleans up after itself.

    Its number is appended to ``came``. A second one ends the process at once.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _STOPPING}
    mine = [number for number in _STOPPING if before[number] in (*_ANSWERED, _leave)]

    def stop(number: int, _: Any) -> None:
        for one in mine:
            signal.signal(one, _leave)
        came.append(number)
        raise KeyboardInterrupt

    try:
        for number in mine:
            signal.signal(number, stop)
        yield
    finally:
        for number in mine:
            signal.signal(number, before[number])


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold SIGINT back for a while, and from processes started meanwhile for ever: who started them will end them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def status_of(number: int) -> int:
    """Return the exit code of a process that a signal ended, as shells give it: 130 for SIGINT, 143 for SIGTERM."""
    return 128 + number


def _leave(number: int, _: Any) -> None:
    os._exit(status_of(number))
