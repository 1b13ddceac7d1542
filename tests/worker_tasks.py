"""Tasks that the tests of worker processes run: they must be importable where they run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from traceview.errors import InputError


def double(number: int) -> int:
    return 2 * number


def fail(number: int) -> int:
    raise InputError(f"{number} cannot be read", "try another")


def surprise(number: int) -> int:
    raise RuntimeError(f"surprised by {number}")


def die_on_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def die_once(marker: str) -> str:
    """Be killed the first time, answer the second."""
    if not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return marker


def own_process(_: int) -> int:
    return os.getpid()
