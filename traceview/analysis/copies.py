"""Copies by direction, stream and memory kind: sizes, rates, gaps, and the cost of a piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.overlap import stream_labels
from traceview.model import Direction, Kind, Memory
from traceview.report import CopyFit, CopyGroup, Migration

if TYPE_CHECKING:
    from traceview.model import Ints, Operations, Trace

FIT_MIN_SIZES = 3
"""A line through fewer distinct sizes says nothing about itself."""

FIT_MIN_SPREAD = 4.0
"""Largest over smallest size below which fixed cost and rate cannot be told apart."""

_FIT_MAX_SIZES = 400
_PLACES = len(Direction) * len(Memory)
_CAUSES = ("unknown", "prefetch", "page_fault", "speculative", "eviction", "access_counters")


def measure_copies(trace: Trace) -> tuple[CopyGroup, ...]:
    """Return one group per (stream, direction, memory kind), the largest first; a batch counts as its pieces."""
    groups = _rows_by_place(trace)
    labels = stream_labels(trace)
    measured = [_group(trace, rows, labels) for rows in groups]
    return tuple(sorted(measured, key=lambda group: (-group.n_bytes, group.stream, group.direction, group.memory)))


def _rows_by_place(trace: Trace) -> list[Ints]:
    """Return the copies of each (stream, direction, memory kind), in start order."""
    operations = trace.operations
    rows = np.flatnonzero(operations.kind == Kind.COPY)
    places = operations.stream[rows] * _PLACES + operations.direction[rows] * len(Memory) + operations.memory[rows]
    # two bytes are enough for the streams of any real trace, and sorted by counting
    narrow = np.int16 if len(trace.streams) * _PLACES < np.iinfo(np.int16).max else np.int64
    order = np.argsort(places.astype(narrow), kind="stable")
    places = places[order]
    return np.split(rows[order], np.flatnonzero(places[1:] != places[:-1]) + 1) if len(rows) else []


def measure_migrations(trace: Trace) -> tuple[Migration, ...]:
    """Return unified-memory migrations by device, direction and cause."""
    table = trace.migrations
    keys = sorted(set(zip(table.device.tolist(), table.direction.tolist(), table.cause.tolist(), strict=True)))
    found = []
    for device, direction, cause in keys:
        own = (table.device == device) & (table.direction == direction) & (table.cause == cause)
        busy = intervals.union(table.start[own], table.end[own]).length
        total = int(table.n_bytes[own].sum())
        found.append(Migration(device, direction_name(direction), _CAUSES[cause], int(own.sum()), total, busy))
    return tuple(found)


def direction_name(direction: int) -> str:
    """Return the word for a :class:`~traceview.model.Direction`."""
    return Direction(direction).name.lower()


def fit_line(n_bytes: Ints, duration_ns: Ints) -> CopyFit:
    """Fit ``duration = a + bytes / b`` to copies of one class.

    The median duration of each size stands for it, and the slope is the median of all slopes between sizes
    (Theil-Sen), so that outliers do not count. Not identifiable where sizes vary too little or the line is no cost.
    """
    sizes = np.unique(n_bytes[_changes(n_bytes)])
    sizes = sizes[sizes > 0]
    if len(sizes) < FIT_MIN_SIZES or sizes[-1] < FIT_MIN_SPREAD * sizes[0]:
        return CopyFit(identifiable=False, reason="sizes vary too little")
    order = np.lexsort((duration_ns, n_bytes))
    begin = np.searchsorted(n_bytes[order], sizes, side="left")
    last = np.searchsorted(n_bytes[order], sizes, side="right") - 1
    typical = (duration_ns[order[(begin + last) // 2]] + duration_ns[order[(begin + last + 1) // 2]]) / 2
    if len(sizes) > _FIT_MAX_SIZES:
        kept = np.linspace(0, len(sizes) - 1, _FIT_MAX_SIZES).astype(np.int64)
        sizes, typical = sizes[kept], typical[kept]
    first, second = np.triu_indices(len(sizes), 1)
    slope = float(np.median((typical[second] - typical[first]) / (sizes[second] - sizes[first])))
    cost = float(np.median(typical - slope * sizes))
    if slope <= 0 or cost < 0:
        return CopyFit(identifiable=False, reason="durations do not grow with size")
    return CopyFit(identifiable=True, piece_cost_ns=cost, rate=1.0 / slope, half_bytes=round(cost / slope))


def _group(trace: Trace, rows: Ints, labels: list[str]) -> CopyGroup:
    operations = trace.operations
    start, end = operations.start[rows], operations.end[rows]
    busy = intervals.union(start, end).length
    span = int(end.max() - start.min())
    gaps = _median(np.maximum(start[1:] - np.maximum.accumulate(end)[:-1], 0))
    del start, end
    pieces = np.maximum(operations.pieces[rows], 1)
    sizes = operations.n_bytes[rows] // pieces
    total = int(operations.n_bytes[rows].sum())
    median, p95 = piece_quantiles(sizes, pieces, (0.5, 0.95))
    stream = int(operations.stream[rows[0]])
    return CopyGroup(
        device=trace.streams[stream].device,
        direction=direction_name(int(operations.direction[rows[0]])),
        memory=Memory(int(operations.memory[rows[0]])).name.lower(),
        stream=labels[stream],
        pieces=int(pieces.sum()),
        n_bytes=total,
        busy_ns=busy,
        span_ns=span,
        rate_busy=total / busy if busy else None,
        rate_span=total / span if span else None,
        min_bytes=int(sizes.min()),
        median_bytes=median,
        p95_bytes=p95,
        max_bytes=int(sizes.max()),
        gap_median_ns=gaps,
        host_median_ns=_host_median(trace, rows),
        histogram=_histogram(sizes, pieces),
        fit=fit_line(operations.n_bytes[rows], operations.end[rows] - operations.start[rows]),
    )


def median_piece(operations: Operations, rows: Ints) -> int:
    """Return the median size of the pieces of some copies, as the table of copies gives it; 0 for no copies."""
    pieces = np.maximum(operations.pieces[rows], 1)
    return piece_quantiles(operations.n_bytes[rows] // pieces, pieces, (0.5,))[0] if len(rows) else 0


def _median(values: Ints) -> int | None:
    return round(float(np.median(values))) if len(values) else None


def _host_median(trace: Trace, rows: Ints) -> int | None:
    """Return the median time of the calls that launched copies, each call once."""
    launch = trace.operations.launch[rows]
    # nearly in order already, which a stable sort is fast on
    ordered = np.sort(launch[launch >= 0], kind="stable")
    calls = ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]]
    return _median(trace.calls.end[calls] - trace.calls.start[calls])


def piece_quantiles(sizes: Ints, pieces: Ints, shares: tuple[float, ...]) -> list[int]:
    """Return, for each share, the smallest size such that at least that share of the pieces is no larger."""
    begin = _changes(sizes)
    sizes, pieces = sizes[begin], np.add.reduceat(pieces, begin, dtype=np.int64)
    order = np.argsort(sizes, kind="stable")
    reached = np.cumsum(pieces[order])
    return [int(sizes[order[np.searchsorted(reached, share * reached[-1])]]) for share in shares]


def _changes(values: Ints) -> Ints:
    """Return where a value differs from the one before it, and the first: copies mostly follow others of their size."""
    return np.flatnonzero(np.append(True, values[1:] != values[:-1])[: len(values)])


def _histogram(sizes: Ints, pieces: Ints) -> dict[str, int]:
    """Return pieces by the power of two at or below their size."""
    bounds = np.int64(1) << np.arange(63, dtype=np.int64)
    begin = _changes(sizes)
    sizes, pieces = sizes[begin], np.add.reduceat(pieces, begin, dtype=np.int64)
    # sums of floats are exact up to 9e15 pieces
    total = np.bincount(np.searchsorted(bounds, sizes, side="right"), weights=pieces, minlength=64)
    lower = [0, *bounds.tolist()]
    return {str(lower[power]): int(total[power]) for power in np.flatnonzero(total)}
