"""How much streams, and classes of operations, run at the same time on one device."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.model import Direction, Kind
from traceview.report import ExposedCopy, Overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview import report
    from traceview.intervals import Intervals
    from traceview.model import Flags, Ints, Trace

PAIRED_STREAMS = 64
"""How many streams of a device are paired with each other, those with most work first."""

COPY_CLASSES = {"h2d": Direction.H2D, "d2h": Direction.D2H, "p2p": Direction.P2P, "d2d": Direction.D2D}


def measure_overlap(
    trace: Trace, forwards: Sequence[report.Forward] = ()
) -> tuple[tuple[Overlap, ...], tuple[ExposedCopy, ...]]:
    """Return the overlap of every pair of streams and of classes, and each copy class's time not under compute.

    In the whole trace and, clipped to [t0, t1), in each forward on the forward's own device. A pair is listed in a
    scope when both have work there. A peer copy counts on its source and on its destination device.
    """
    pairs: list[Overlap] = []
    exposed: list[ExposedCopy] = []
    for process, device in sorted({(stream.process, stream.device) for stream in trace.streams}):
        here = [one for one in forwards if (one.process, one.device) == (process, device)]
        scopes = _Scopes(process, device, here)
        rows = np.flatnonzero(touches(trace, process, device))
        classes = _classes(trace, rows)
        for sets in (_busiest(_streams(trace, rows)), classes):
            for (a, busy_a), (b, busy_b) in combinations(sets.items(), 2):
                pairs += scopes.overlap(a, busy_a, b, busy_b)
        for name in COPY_CLASSES:
            if name in classes:
                exposed += scopes.exposed(name, classes[name], classes.get("compute", intervals.empty()))
    return tuple(pairs), tuple(exposed)


def touches(trace: Trace, process: int, device: int) -> Flags:
    """Return which operations run on a device or are peer copies to or from it."""
    operations = trace.operations
    peer = (operations.direction == Direction.P2P) & ((operations.source == device) | (operations.target == device))
    own: Flags = (trace.operation_process() == process) & ((trace.operation_device() == device) | peer)
    return own


def stream_labels(trace: Trace) -> list[str]:
    """Return ``pid/dev/stream`` for each stream; with the context between where that alone is not unique."""
    plain = [stream.label for stream in trace.streams]
    full = [
        f"{stream.process}/{stream.device}/{stream.context}.{stream.green_context}/{stream.number}"
        for stream in trace.streams
    ]
    return [label if plain.count(label) == 1 else longer for label, longer in zip(plain, full, strict=True)]


def _streams(trace: Trace, rows: Ints) -> dict[str, Intervals]:
    labels = stream_labels(trace)
    stream = trace.operations.stream[rows]
    return {labels[one]: _busy(trace, rows[stream == one]) for one in np.unique(stream).tolist()}


def _busiest(streams: dict[str, Intervals]) -> dict[str, Intervals]:
    """Return at most ``PAIRED_STREAMS`` streams, those with most work, in their order: pairs grow with the square."""
    if len(streams) <= PAIRED_STREAMS:
        return streams
    kept = sorted(streams, key=lambda label: -streams[label].length)[:PAIRED_STREAMS]
    return {label: busy for label, busy in streams.items() if label in kept}


def _classes(trace: Trace, rows: Ints) -> dict[str, Intervals]:
    kind, direction = trace.operations.kind[rows], trace.operations.direction[rows]
    chosen = {name: direction == way for name, way in COPY_CLASSES.items()}
    chosen["memset"] = kind == Kind.MEMSET
    chosen["compute"] = (kind == Kind.KERNEL) | (kind == Kind.GRAPH)
    return {name: _busy(trace, rows[mask]) for name, mask in chosen.items() if mask.any()}


def _busy(trace: Trace, rows: Ints) -> Intervals:
    return intervals.union(trace.operations.start[rows], trace.operations.end[rows])


class _Scopes:
    """The whole trace and each forward of one device, measured together."""

    def __init__(self, process: int, device: int, forwards: Sequence[report.Forward]) -> None:
        self._place = (process, device)
        self._names: list[str | int] = ["trace", *(forward.index for forward in forwards)]
        # half of the int64 range, so that differences of bounds stay inside it
        bound = np.iinfo(np.int64).max // 2
        self._low = np.array([-bound, *(forward.t0_ns for forward in forwards)], dtype=np.int64)
        self._high = np.array([bound, *(forward.t1_ns for forward in forwards)], dtype=np.int64)

    def overlap(self, a: str, busy_a: Intervals, b: str, busy_b: Intervals) -> Iterator[Overlap]:
        """Yield the overlap of two sets in each scope where both have work."""
        both = intervals.intersect(busy_a, busy_b)
        lengths = zip(self._names, self._in(busy_a), self._in(busy_b), self._in(both), strict=True)
        for scope, length_a, length_b, common in lengths:
            if length_a and length_b:
                yield Overlap(scope, *self._place, a, b, length_a, length_b, common, common / min(length_a, length_b))

    def exposed(self, name: str, busy: Intervals, compute: Intervals) -> Iterator[ExposedCopy]:
        """Yield a class's time outside compute in each scope where the class has work."""
        outside = intervals.subtract(busy, compute)
        for scope, length, left in zip(self._names, self._in(busy), self._in(outside), strict=True):
            if length:
                yield ExposedCopy(scope, *self._place, name, left)

    def _in(self, busy: Intervals) -> list[int]:
        lengths: list[int] = intervals.coverage(busy, self._low, self._high).tolist()
        return lengths
