"""Findings of a trace without forwards: a class of copies costs what of its time no compute covers."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals, units
from traceview.analysis.advice import ADVICE
from traceview.analysis.copies import median_piece
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

    Each nanosecond of a device goes to one cause only, in the order pageable, cut up, on the compute stream, blocking;
    the cost is that of the device that loses most to the cause. Traffic that slows loads down costs the time that they
    lost to it.
    """
    operations = trace.operations
    if not len(operations):
        return []
    span = int(operations.end.max() - operations.start.min())
    costs = _costs(trace, thresholds)
    loads = np.flatnonzero(operations.direction == Direction.H2D)
    costs += [(name, loads, cost) for name, cost in geometric_slowdowns(lanes).items()]
    found = []
    for name, rows, cost in costs:
        share = cost / span if span else 0.0
        if cost and share >= thresholds.min_share and cost >= 1000 * thresholds.min_cost_us:
            found.append(_finding(trace, name, rows, (cost, share), thresholds))
    return found


def _costs(trace: Trace, thresholds: Thresholds) -> list[tuple[str, Ints, int]]:
    """Return each cause with the copies of the device that loses most to it, and what it loses."""
    operations = trace.operations
    runs = (operations.kind == Kind.KERNEL) | (operations.kind == Kind.GRAPH)
    places = [(stream.process, stream.device) for stream in trace.streams]
    worst: dict[str, tuple[Ints, int]] = {}
    for place in dict.fromkeys(places):
        here = np.array([one == place for one in places], dtype=bool)[operations.stream]
        taken = intervals.union(operations.start[runs & here], operations.end[runs & here])
        for name, rows in _causes(trace, runs, thresholds):
            own = rows[here[rows]]
            busy = intervals.union(operations.start[own], operations.end[own])
            cost = intervals.subtract(busy, taken).length
            taken = _together(taken, busy)
            if cost > worst.get(name, (own, 0))[1]:
                worst[name] = (own, cost)
    return [(name, *found) for name, found in worst.items()]


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
        small = median_piece(operations, own) <= thresholds.fragment_bytes
        if small and np.maximum(operations.pieces[own], 1).sum() >= 8 * thresholds.fragment_pieces:
            parts.append(own)
    return np.concatenate(parts)


def _finding(trace: Trace, name: str, rows: Ints, cost: tuple[int, float], thresholds: Thresholds) -> Finding:
    total = int(trace.operations.n_bytes[rows].sum())
    streams = sorted({trace.streams[stream].label for stream in trace.operations.stream[rows].tolist()})
    places = {(stream.process, stream.device) for stream in trace.streams}
    own = {
        (trace.streams[one].process, trace.streams[one].device)
        for one in np.unique(trace.operations.stream[rows]).tolist()
    }
    worst = [f"GPU {device} of process {process}, which loses most: " for process, device in own]
    place = worst[0] if len(own) == 1 < len(places) else ""
    copies = units.counted(len(rows), "copy", "copies")
    level = "high" if cost[1] >= thresholds.high_share else "medium" if cost[1] >= thresholds.medium_share else "low"
    return Finding(
        id=name,
        severity=level,
        cost_ns=cost[0],
        share=cost[1],
        basis="geometric",
        message=ADVICE[name].message,
        evidence=(
            f"{place}{units.size(total)} in {copies}{_by(trace, name, rows)} on {', '.join(streams[:3])}",
            f"{'they lose' if name in BESIDE_CAUSES else 'they run outside compute for'} {units.duration(cost[0])}, "
            f"{units.percent(cost[1])} of the time from the first to the last operation",
        ),
        advice=ADVICE[name].remedy,
    )


def _by(trace: Trace, name: str, rows: Ints) -> str:
    """Return which calls block, where blocking is the cause: `` by cudaMemcpy (5)``, the most frequent first."""
    if name != "implicit_sync":
        return ""
    made = Counter(trace.names[call] for call in trace.calls.name[trace.operations.launch[rows]].tolist())
    return " by " + ", ".join(f"{call} ({units.count(number)})" for call, number in made.most_common(2))
