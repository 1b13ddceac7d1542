"""Streams and events of PyTorch, with the types that it leaves out."""

from __future__ import annotations

import torch


def new_stream() -> torch.cuda.Stream:
    """Return a stream of its own on the current device."""
    return torch.cuda.Stream()  # type: ignore[no-untyped-call, unused-ignore]


def new_event() -> torch.cuda.Event:
    """Return an event that knows when it happened."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call, unused-ignore]


def elapsed_ns(begin: torch.cuda.Event, end: torch.cuda.Event) -> float:
    """Return the time between two events that have happened, in ns (CUDA's resolution is about half a microsecond)."""
    return float(begin.elapsed_time(end)) * 1e6
