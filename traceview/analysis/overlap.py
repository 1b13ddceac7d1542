"""How much streams, and classes of operations, run at the same time on one device."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.places import of_process, on_device, used
from traceview.model import Direction, Kind
from traceview.report import ExposedCopy, Overlap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview import report
    from traceview.intervals import Intervals
    from traceview.model import Flags, Trace

    _Measured = tuple[str, Intervals, list[int]]
    """a set's name, the set, and its length in each scope"""

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
    labels = stream_labels(trace)
    for process, device in sorted({(stream.process, stream.device) for stream in trace.streams}):
        here = [one for one in forwards if (one.process, one.device) == (process, device)]
        scopes = _Scopes(process, device, here)
        on_it = touches(trace, process, device)
        classes = _classes(trace, on_it)
        for sets in (_busiest(_streams(trace, on_it, labels)), classes):
            measured = [(name, busy, scopes.lengths(busy)) for name, busy in sets.items()]
            for a, b in combinations(measured, 2):
                pairs += scopes.overlap(a, b)
        for name in COPY_CLASSES:
            if name in classes:
                exposed += scopes.exposed(name, classes[name], classes.get("compute", intervals.empty()))
    return tuple(pairs), tuple(exposed)


def touches(trace: Trace, process: int, device: int) -> Flags:
    """Return which operations run on a device or are peer copies to or from it."""
    operations = trace.operations
    peer = (operations.direction == Direction.P2P) & ((operations.source == device) | (operations.target == device))
    own: Flags = of_process(trace, process) & (on_device(trace, device) | peer)
    return own


def stream_labels(trace: Trace) -> list[str]:
    """Return ``pid/dev/stream`` for each stream; with the context between where that alone is not unique."""
    plain = [stream.label for stream in trace.streams]
    full = [
        f"{stream.process}/{stream.device}/{stream.context}.{stream.green_context}/{stream.number}"
        for stream in trace.streams
    ]
    count = Counter(plain)
    return [label if count[label] == 1 else longer for label, longer in zip(plain, full, strict=True)]


def _streams(trace: Trace, here: Flags, labels: Sequence[str]) -> dict[str, Intervals]:
    stream = trace.operations.stream
    return {labels[one]: _busy(trace, here & (stream == one)) for one in used(stream[here])}


def _busiest(streams: dict[str, Intervals]) -> dict[str, Intervals]:
    """Return at most ``PAIRED_STREAMS`` streams, those with most work, in their order: pairs grow with the square."""
    if len(streams) <= PAIRED_STREAMS:
        return streams
    kept = sorted(streams, key=lambda label: -streams[label].length)[:PAIRED_STREAMS]
    return {label: busy for label, busy in streams.items() if label in kept}


def _classes(trace: Trace, here: Flags) -> dict[str, Intervals]:
    kind, direction = trace.operations.kind, trace.operations.direction
    chosen = {name: here & (direction == int(way)) for name, way in COPY_CLASSES.items()}
    chosen["memset"] = here & (kind == int(Kind.MEMSET))
    chosen["compute"] = here & ((kind == int(Kind.KERNEL)) | (kind == int(Kind.GRAPH)))
    return {name: _busy(trace, mask) for name, mask in chosen.items() if mask.any()}


def _busy(trace: Trace, chosen: Flags) -> Intervals:
    return intervals.union(trace.operations.start[chosen], trace.operations.end[chosen])


class _Scopes:
    """The whole trace and each forward of one device, measured together."""

    def __init__(self, process: int, device: int, forwards: Sequence[report.Forward]) -> None:
        self._place = (process, device)
        self._names: list[str | int] = ["trace", *(forward.index for forward in forwards)]
        # half of the int64 range, so that differences of bounds stay inside it
        bound = np.iinfo(np.int64).max // 2
        self._low = np.array([-bound, *(forward.t0_ns for forward in forwards)], dtype=np.int64)
        self._high = np.array([bound, *(forward.t1_ns for forward in forwards)], dtype=np.int64)

    def overlap(self, a: _Measured, b: _Measured) -> Iterator[Overlap]:
        """Yield the overlap of two sets in each scope where both have work."""
        both = self.lengths(intervals.intersect(a[1], b[1]))
        for scope, of_a, of_b, common in zip(self._names, a[2], b[2], both, strict=True):
            if of_a and of_b:
                yield Overlap(scope, *self._place, a[0], b[0], of_a, of_b, common, common / min(of_a, of_b))

    def exposed(self, name: str, busy: Intervals, compute: Intervals) -> Iterator[ExposedCopy]:
        """Yield a class's time outside compute in each scope where the class has work."""
        outside = self.lengths(intervals.subtract(busy, compute))
        for scope, length, left in zip(self._names, self.lengths(busy), outside, strict=True):
            if length:
                yield ExposedCopy(scope, *self._place, name, left)

    def lengths(self, busy: Intervals) -> list[int]:
        """Return how long a set is in each scope."""
        lengths: list[int] = intervals.coverage(busy, self._low, self._high).tolist()
        return lengths
