"""Where work ran, by looks at the few streams and threads that there are rather than at every operation and call."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from traceview.model import Flags, Ints, Trace


def on_device(trace: Trace, device: int) -> Flags:
    """Return which operations ran on a device."""
    here: Flags = (trace.stream_devices() == device)[trace.operations.stream]
    return here


def of_process(trace: Trace, process: int) -> Flags:
    """Return which operations a process ran."""
    own: Flags = (trace.stream_processes() == process)[trace.operations.stream]
    return own


def used(indices: Ints) -> list[int]:
    """Return which streams or threads some rows name, in ascending order."""
    named: list[int] = np.flatnonzero(np.bincount(indices)).tolist()
    return named
