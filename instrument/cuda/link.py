"""What the link to the device can do: the rate of one large plain copy from pinned memory."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import torch

from instrument.cuda import cudart
from instrument.cuda.streams import elapsed_ns, new_event, new_stream

_PLAIN_COPY_BYTES = 512 << 20
_REPEATS = 3


@dataclass(frozen=True)
class PlainCopy:
    """The best of a few large copies, pinned host memory to device; bytes and bytes per second."""

    bytes: int
    bytes_per_s: int


def plain_copy() -> PlainCopy:
    """Copy a large pinned buffer a few times with nothing beside it, on a stream of its own, timed with CUDA events."""
    stream = new_stream()
    source = torch.ones(_PLAIN_COPY_BYTES, dtype=torch.uint8, pin_memory=True)
    target = torch.empty(_PLAIN_COPY_BYTES, dtype=torch.uint8, device="cuda")
    marks = [new_event() for _ in range(_REPEATS + 1)]
    torch.cuda.synchronize()
    marks[0].record(stream)
    for mark in marks[1:]:
        addresses = (target.data_ptr(), source.data_ptr())
        cudart.copy_async(*addresses, _PLAIN_COPY_BYTES, cudart.HOST_TO_DEVICE, stream.cuda_stream)
        mark.record(stream)
    stream.synchronize()
    best_ns = min(elapsed_ns(a, b) for a, b in pairwise(marks))
    return PlainCopy(_PLAIN_COPY_BYTES, round(_PLAIN_COPY_BYTES * 1e9 / best_ns))
