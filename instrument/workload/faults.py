"""What is done wrong on purpose around a layer's compute, one small function per fault.

The other faults change how the pipeline is built, not what surrounds a layer: ``same-stream``, ``late-submission``,
``thread`` and ``no-names`` are found where streams, loads and names are, ``graph`` where compute is launched.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from instrument.cuda import cudart
from instrument.cuda.streams import new_event

if TYPE_CHECKING:
    from collections.abc import Callable

_ALLOCATION_BYTES = 1 << 20
_SMALL_COPY_BYTES = 4096


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True)
class Around:
    """What happens on the host, in the layer's compute range, before its first kernel and after its last."""

    before: Callable[[], None] = _nothing
    after: Callable[[], None] = _nothing


def around_compute(fault: str, stream: torch.cuda.Stream) -> Around:
    """Return what the fault does around each layer's compute on ``stream``; nothing for faults that lie elsewhere."""
    return AROUND[fault](stream) if fault in AROUND else Around()


def _item(_stream: torch.cuda.Stream) -> Around:
    flag = torch.zeros(1, dtype=torch.int32, device="cuda")

    def read_back() -> None:
        flag.item()

    return Around(after=read_back)


def _stream_sync(stream: torch.cuda.Stream) -> Around:
    return Around(after=stream.synchronize)


def _device_sync(_stream: torch.cuda.Stream) -> Around:
    return Around(after=torch.cuda.synchronize)


def _event_sync(stream: torch.cuda.Stream) -> Around:
    event = new_event()

    def wait() -> None:
        event.record(stream)
        event.synchronize()

    return Around(after=wait)


def _alloc_free(_stream: torch.cuda.Stream) -> Around:
    return Around(after=lambda: cudart.allocate_and_free(_ALLOCATION_BYTES))


def _small_copy_first(stream: torch.cuda.Stream) -> Around:
    source = torch.zeros(_SMALL_COPY_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.zeros(_SMALL_COPY_BYTES, dtype=torch.uint8, device="cuda")

    def copy() -> None:
        handle = stream.cuda_stream
        cudart.copy_async(target.data_ptr(), source.data_ptr(), _SMALL_COPY_BYTES, cudart.HOST_TO_DEVICE, handle)

    return Around(before=copy)


AROUND: dict[str, Callable[[torch.cuda.Stream], Around]] = {
    "item": _item,
    "stream-sync": _stream_sync,
    "device-sync": _device_sync,
    "event-sync": _event_sync,
    "alloc-free": _alloc_free,
    "small-copy-first": _small_copy_first,
}
"""The faults around a layer's compute."""


def busy_pause(microseconds: int) -> Callable[[], None]:
    """Return a function that keeps this thread busy for that long: host work between two submissions."""
    length_ns = microseconds * 1000

    def pause() -> None:
        until = time.perf_counter_ns() + length_ns
        while time.perf_counter_ns() < until:
            pass

    return pause
