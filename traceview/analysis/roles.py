"""What each operation of a forward is there for: loading, computing, or something else."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.naming import Named
from traceview.model import Direction, Kind

if TYPE_CHECKING:
    from traceview.model import Flags, Ints, Trace

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
    loads = operations.direction == Direction.H2D
    n_bytes = np.bincount(operations.stream[loads], weights=operations.n_bytes[loads], minlength=count)
    places = [(stream.process, stream.device) for stream in trace.streams]
    carries = np.zeros(count, dtype=bool)
    for place in set(places):
        here = np.array([one == place for one in places], dtype=bool)
        carries[here] = (n_bytes[here] > 0) & (n_bytes[here] >= LOAD_STREAM_SHARE * n_bytes[here].sum())
    kernels = np.bincount(operations.stream[operations.kind == Kind.KERNEL], minlength=count)
    movers = np.bincount(operations.stream[mover], minlength=count)
    return carries | ((movers > 0) & (2 * movers > kernels))


def find_roles(trace: Trace, rows: Ints, forward: Ints, named: Ints, by_share: Flags, mover: Flags) -> Ints:
    """Return the role of each of some operations, those of all forwards at once.

    ``forward`` numbers the forward of each from 0, ``named`` says in which kind of range it was launched (``Named``),
    ``by_share`` which streams carry loads judged without names, ``mover`` which operations are mover kernels. What no
    range names goes by its kind and by what its stream carries; where the forward names no load (or no compute),
    streams are judged without names.
    """
    operations = trace.operations
    kind, direction, stream = operations.kind[rows], operations.direction[rows], operations.stream[rows]
    h2d, d2h, d2d = (direction == int(way) for way in (Direction.H2D, Direction.D2H, Direction.D2D))
    runs = (kind != int(Kind.COPY)) | d2d
    in_load, in_compute = named == int(Named.LOAD), named == int(Named.COMPUTE)
    on_stream = forward.astype(np.int64) * len(trace.streams) + stream

    names_load = _with(forward, in_load)
    unnamed_mover = mover & by_share[stream] & ~names_load
    on_load = np.where(names_load, _with(on_stream, in_load), by_share[stream])
    works = ((kind == int(Kind.KERNEL)) | (kind == int(Kind.GRAPH))) & ~unnamed_mover
    named_work = in_compute & runs
    on_compute = _with(on_stream, np.where(_with(forward, named_work), named_work, works))

    conditions = {
        Role.LOAD: in_load | (~in_compute & (unnamed_mover | (h2d & on_load))),
        Role.COMPUTE: named_work | (~in_compute & ~h2d & ~d2h & on_compute),
        Role.INPUT: h2d,
        Role.READBACK: in_compute & d2h,
        Role.WRITEBACK: d2h,
    }
    return np.select([*conditions.values()], [np.int8(role) for role in conditions], np.int8(Role.OTHER))


def _with(groups: Ints, chosen: Flags) -> Flags:
    """Return which rows share their group's number with a chosen row."""
    found = np.zeros(int(groups.max(initial=0)) + 1, dtype=bool)
    found[groups[chosen]] = True
    return found[groups]
