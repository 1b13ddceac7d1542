"""Holds a stream back for the moment between an event and the work that it stands before.

An event on an idle stream happens as soon as it is recorded, and the work after it only once the host has submitted it:
tens of microseconds later under a profiler, hundreds with movers whose call is slow. Where the stream waits until both
are submitted, the event is the start of the work.
"""

from __future__ import annotations

import ctypes
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from instrument.cuda.driver import SUCCESS, load_driver

if TYPE_CHECKING:
    from collections.abc import Iterator

_GREATER_OR_EQUAL = 0
"""``CU_STREAM_WAIT_VALUE_GEQ``."""


class Gate:
    """A word of pinned host memory that streams wait for; what cannot wait for memory goes on without waiting."""

    def __init__(self) -> None:
        self._word = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        self._value = self._word.numpy()
        self._wait: Any = getattr(load_driver(), "cuStreamWaitValue32_v2", None)
        self._times = 0

    @contextmanager
    def held(self, stream: torch.cuda.Stream) -> Iterator[None]:
        """Keep what is put on the stream inside from starting before the end.

        Not the first time: what is submitted first may load code, which waits for the device and so for ever.
        """
        self._times += 1
        if self._wait is not None and self._times > 1:
            address = ctypes.c_uint64(self._word.data_ptr())
            handle = ctypes.c_void_p(stream.cuda_stream)
            if self._wait(handle, address, ctypes.c_uint32(self._times), ctypes.c_uint(_GREATER_OR_EQUAL)) != SUCCESS:
                self._wait = None
        try:
            yield
        finally:
            self._value[0] = self._times
