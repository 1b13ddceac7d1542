"""The kinds of things that a trace tells apart: the words that its columns stand for."""

from __future__ import annotations

from enum import Enum, IntEnum


class Kind(IntEnum):
    """What sort of operation ran."""

    KERNEL = 0
    COPY = 1
    MEMSET = 2
    GRAPH = 3


class Direction(IntEnum):
    """Which way a copy went; ``OTHER`` for what is no copy or has no direction of these."""

    OTHER = -1
    H2D = 0
    D2H = 1
    P2P = 2
    D2D = 3
    H2H = 4


class Memory(IntEnum):
    """What kind of memory the host side of a copy is; of a copy without host side, ``DEVICE``."""

    UNKNOWN = -1
    PINNED = 0
    PAGEABLE = 1
    MANAGED = 2
    DEVICE = 3


class Content(str, Enum):
    """A kind of data that an export can hold."""

    KERNELS = "kernels"
    COPIES = "copies"
    API_CALLS = "api_calls"
    NVTX = "nvtx"
    SYNCHRONISATIONS = "synchronisations"
    EVENT_RECORDS = "event_records"
    CALL_STACKS = "call_stacks"
    GPU_METRICS = "gpu_metrics"
    NIC_METRICS = "nic_metrics"


class CallKind(IntEnum):
    """What an API call does to the thread that makes it, judged by its name."""

    OTHER = 0
    SYNC = 1
    """waits for the device on purpose"""
    BLOCKING = 2
    """waits without saying so: allocation, registration, synchronous copies and memsets"""
    ASYNC_COPY = 3
    """submits a copy and returns"""
    LAUNCH = 4
    """submits kernels or graphs"""


UNNAMED = "[unknown "
"""Begins the name of a kernel or a call whose text the export lacks; its number follows."""
