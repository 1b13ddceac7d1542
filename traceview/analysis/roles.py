"""What each operation of a forward is there for: loading, computing, or something else."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.naming import Named
from traceview.model import Direction, Kind

if TYPE_CHECKING:
    from traceview.model import Flags, Ints, Operations, Trace

MOVER_KERNEL = r"hicache|transfer_kv|kvcacheio|kv_cache_(copy|transfer|load)"
"""Names of kernels that move KV cache pages by SM (SGLang's HiCache, vLLM, this project's workload)."""

LOAD_STREAM_SHARE = 0.1
"""A stream carries loads when it carries at least this share of its device's host-to-device bytes."""


class Role(IntEnum):
    """What an operation does in its forward."""

    LOAD = 0
    COMPUTE = 1
    INPUT = 2
    """host-to-device copy of something that is no layer's load: token ids, sequence lengths"""
    READBACK = 3
    """device-to-host copy inside a layer's compute"""
    WRITEBACK = 4
    """device-to-host copy outside any layer's compute"""
    OTHER = 5


def is_mover(trace: Trace, expression: str = MOVER_KERNEL) -> Flags:
    """Return which operations are kernels whose name says that they move a cache."""
    pattern = re.compile(expression)
    mover = np.array([bool(pattern.search(name)) for name in trace.names] + [False], dtype=bool)
    found: Flags = (trace.operations.kind == Kind.KERNEL) & mover[trace.operations.name]
    return found


def load_streams(trace: Trace, mover: Flags) -> Flags:
    """Return which streams carry loads, judged without names.

    A load stream carries a good part of its device's host-to-device bytes, or runs mostly mover kernels.
    """
    operations = trace.operations
    count = len(trace.streams)
    n_bytes = np.zeros(count, dtype=np.int64)
    loads = operations.direction == Direction.H2D
    np.add.at(n_bytes, operations.stream[loads], operations.n_bytes[loads])
    places = [(stream.process, stream.device) for stream in trace.streams]
    carries = np.zeros(count, dtype=bool)
    for place in set(places):
        here = np.array([one == place for one in places], dtype=bool)
        carries[here] = (n_bytes[here] > 0) & (n_bytes[here] >= LOAD_STREAM_SHARE * n_bytes[here].sum())
    kernels = np.bincount(operations.stream[operations.kind == Kind.KERNEL], minlength=count)
    movers = np.bincount(operations.stream[mover], minlength=count)
    return carries | ((movers > 0) & (2 * movers > kernels))


def find_roles(operations: Operations, named: Ints, by_share: Flags, mover: Flags) -> Ints:
    """Return the role of each operation of one forward.

    ``named`` says in which kind of range it was launched (``Named``), ``by_share`` which streams carry loads judged
    without names, ``mover`` which operations are mover kernels. What no range names goes by its kind and by what
    its stream carries; where the forward names no load (or no compute), streams are judged without names.
    """
    kind, direction, stream = operations.kind, operations.direction, operations.stream
    h2d, d2h, d2d = (direction == way for way in (Direction.H2D, Direction.D2H, Direction.D2D))
    runs = (kind != Kind.COPY) | d2d
    in_load, in_compute = named == Named.LOAD, named == Named.COMPUTE

    unnamed_mover = mover & by_share[stream] & ~in_load.any()
    on_load = np.isin(stream, stream[in_load]) if in_load.any() else by_share[stream]
    works = ((kind == Kind.KERNEL) | (kind == Kind.GRAPH)) & ~unnamed_mover
    named_work = in_compute & runs
    on_compute = np.isin(stream, stream[named_work] if named_work.any() else stream[works])

    computes = np.select([runs, d2h, h2d], [Role.COMPUTE, Role.READBACK, Role.INPUT], Role.OTHER)
    elsewhere = np.select(
        [unnamed_mover, h2d & on_load, h2d, d2h, on_compute],
        [Role.LOAD, Role.LOAD, Role.INPUT, Role.WRITEBACK, Role.COMPUTE],
        Role.OTHER,
    )
    roles: Ints = np.select([in_load, in_compute], [int(Role.LOAD), computes], elsewhere).astype("int8")
    return roles
