"""Findings of a trace without forwards: a class of copies costs what of its time no compute covers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals, units
from traceview.analysis.advice import ADVICE
from traceview.analysis.link_causes import BESIDE_CAUSES, geometric_slowdowns
from traceview.model import CallKind, Direction, Kind, Memory
from traceview.report import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.analysis.case import Thresholds
    from traceview.intervals import Intervals
    from traceview.model import Flags, Ints, Trace
    from traceview.report_links import Lane


def find_geometric(trace: Trace, lanes: Sequence[Lane], thresholds: Thresholds) -> list[Finding]:
    """Return findings whose cost is copy time outside compute; their share is of the trace's whole GPU time span.

    Each nanosecond goes to one cause only, in the order pageable, cut up, on the compute stream, blocking. Traffic that
    slows loads down costs the time that they lost to it.
    """
    operations = trace.operations
    if not len(operations):
        return []
    span = int(operations.end.max() - operations.start.min())
    runs = (operations.kind == Kind.KERNEL) | (operations.kind == Kind.GRAPH)
    taken = intervals.union(operations.start[runs], operations.end[runs])
    found = []
    for name, rows in _causes(trace, runs, thresholds):
        busy = intervals.union(operations.start[rows], operations.end[rows])
        cost = intervals.subtract(busy, taken).length
        taken = _together(taken, busy)
        share = cost / span if span else 0.0
        if share >= thresholds.min_share and cost >= 1000 * thresholds.min_cost_us:
            found.append(_finding(trace, name, rows, (cost, share), thresholds))
    for name, cost in geometric_slowdowns(lanes).items():
        share = cost / span if span else 0.0
        if share >= thresholds.min_share and cost >= 1000 * thresholds.min_cost_us:
            loads = np.flatnonzero(operations.direction == Direction.H2D)
            found.append(_finding(trace, name, loads, (cost, share), thresholds))
    return found


def _together(a: Intervals, b: Intervals) -> Intervals:
    return intervals.union(np.concatenate((a.start, b.start)), np.concatenate((a.end, b.end)))


def _causes(trace: Trace, runs: Flags, thresholds: Thresholds) -> Iterator[tuple[str, Ints]]:
    """Yield each cause with the copies that show it."""
    operations = trace.operations
    loads = operations.direction == Direction.H2D
    yield "pageable_source", np.flatnonzero(loads & (operations.memory == Memory.PAGEABLE))
    pinned = loads & (operations.memory == Memory.PINNED)
    yield "fragmented_copies", _cut_up(trace, np.flatnonzero(pinned), thresholds)
    yield "same_stream", np.flatnonzero(pinned & _computes_most(trace, runs)[operations.stream])
    launched = operations.launch >= 0
    blocking = np.zeros(len(operations), dtype=bool)
    blocking[launched] = trace.calls.kind[operations.launch[launched]] == CallKind.BLOCKING
    yield "implicit_sync", np.flatnonzero(blocking & (operations.direction == Direction.D2H))


def _computes_most(trace: Trace, runs: Flags) -> Flags:
    """Return which streams carry at least half of their device's compute time.

    Where compute is spread over many streams, copies on them run beside other streams' compute: that is a pipeline.
    """
    operations = trace.operations
    busy = np.zeros(len(trace.streams), dtype=np.int64)
    np.add.at(busy, operations.stream[runs], (operations.end - operations.start)[runs])
    places = [(stream.process, stream.device) for stream in trace.streams]
    total = np.array([sum(busy[k] for k, other in enumerate(places) if other == one) for one in places], dtype=np.int64)
    most: Flags = (busy > 0) & (2 * busy >= total)
    return most


def _cut_up(trace: Trace, rows: Ints, thresholds: Thresholds) -> Ints:
    """Return the copies of those streams whose typical piece is small and that carry many."""
    operations = trace.operations
    parts = [rows[:0]]
    for stream in np.unique(operations.stream[rows]):
        own = rows[operations.stream[rows] == stream]
        pieces = np.maximum(operations.pieces[own], 1)
        small = float(np.median(operations.n_bytes[own] / pieces)) <= thresholds.fragment_bytes
        if small and pieces.sum() >= 8 * thresholds.fragment_pieces:
            parts.append(own)
    return np.concatenate(parts)


def _finding(trace: Trace, name: str, rows: Ints, cost: tuple[int, float], thresholds: Thresholds) -> Finding:
    total = int(trace.operations.n_bytes[rows].sum())
    streams = sorted({trace.streams[stream].label for stream in trace.operations.stream[rows].tolist()})
    level = "high" if cost[1] >= thresholds.high_share else "medium" if cost[1] >= thresholds.medium_share else "low"
    return Finding(
        id=name,
        severity=level,
        cost_ns=cost[0],
        share=cost[1],
        basis="geometric",
        message=ADVICE[name].message,
        evidence=(
            f"{units.size(total)} in {len(rows):,} copies on {', '.join(streams[:3])}",
            f"{units.duration(cost[0])} {'lost to it' if name in BESIDE_CAUSES else 'of it outside compute'}, "
            f"{units.percent(cost[1])} of the time from the first to the last operation",
        ),
        advice=ADVICE[name].remedy,
    )
