"""Spans of time that are forwards, by name or by events, and which of them an operation was launched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.events import pair_waits, rows_by_stream
from traceview.analysis.naming import Named

if TYPE_CHECKING:
    from traceview.analysis.naming import NamedRanges
    from traceview.model import Ints, Ranges, Trace


@dataclass(frozen=True)
class Span:
    """A forward as its thread sees it."""

    name: str
    thread: int
    """index into ``Trace.threads``"""
    start: int
    end: int


@dataclass(frozen=True)
class Placement:
    """For each operation the forward and layer that it was launched for; arrays of one length."""

    span: Ints
    """number of its span, or -1"""
    meaning: Ints
    """:class:`~traceview.analysis.naming.Named`: launched as a load, as compute, or neither"""
    layer: Ints
    """layer, or -1"""
    range: Ints
    """row of ``Trace.ranges``: the range that names it as a load or compute, or -1"""

    @staticmethod
    def nowhere(operations: int) -> Placement:
        """Return the placement of operations that belong to nothing."""
        none = np.full(operations, -1, dtype=np.int64)
        return Placement(none, np.full(operations, int(Named.NOTHING), dtype=np.int64), none.copy(), none.copy())


def place_by_names(trace: Trace, named: NamedRanges) -> tuple[list[Span], Placement]:
    """Return the named forwards in start order and what was launched in them.

    An operation is in a range when its launch started inside it on the range's thread; the innermost wins, and of
    nested forwards the outermost. Work in a layer's range on another thread goes to the forward that waits for it.
    """
    outer = outermost(trace.ranges, np.flatnonzero(named.meaning == Named.FORWARD))
    layered = np.flatnonzero(named.meaning > Named.FORWARD)
    op_range = _innermost_of_launch(trace, layered)
    op_forward = _innermost_of_launch(trace, outer)
    elsewhere = _forward_of_far_ranges(trace, named, outer, op_range)
    far = (op_forward < 0) & (op_range >= 0)
    op_forward[far] = elsewhere[op_range[far]]
    ranges = trace.ranges
    spans = [
        Span(trace.names[ranges.name[row]], int(ranges.thread[row]), int(ranges.start[row]), int(ranges.end[row]))
        for row in outer.tolist()
    ]
    inside = op_range >= 0
    return spans, Placement(
        span=np.where(op_forward >= 0, np.searchsorted(outer, op_forward), -1),
        meaning=np.where(inside, np.append(named.meaning, int(Named.NOTHING))[op_range], int(Named.NOTHING)),
        layer=np.where(inside, np.append(named.layer, -1)[op_range], -1),
        range=op_range,
    )


def outermost(ranges: Ranges, rows: Ints) -> Ints:
    """Return those of ``rows`` that lie in no other of them on their thread."""
    kept = [rows[:0]]
    for thread in np.unique(ranges.thread[rows]):
        own = rows[ranges.thread[rows] == thread]
        reach = np.maximum.accumulate(ranges.end[own])
        inside = np.concatenate(([False], ranges.end[own][1:] <= reach[:-1]))
        kept.append(own[~inside])
    return np.sort(np.concatenate(kept))


def innermost_range(trace: Trace, rows: Ints, calls: Ints) -> Ints:
    """Return, for each call, the innermost of the ranges ``rows`` that it started in on its own thread, or -1."""
    found = np.full(len(calls), -1, dtype=np.int64)
    threads = trace.calls.thread[calls]
    for thread in np.unique(trace.ranges.thread[rows]):
        own = rows[trace.ranges.thread[rows] == thread]
        mine = np.flatnonzero(threads == thread)
        at = intervals.innermost(trace.ranges.start[own], trace.ranges.end[own], trace.calls.start[calls[mine]])
        found[mine] = np.where(at >= 0, own[at], -1)
    return found


def _innermost_of_launch(trace: Trace, rows: Ints) -> Ints:
    """Return, for each operation, the innermost of the ranges ``rows`` that it was launched in, or -1."""
    found = np.full(len(trace.operations), -1, dtype=np.int64)
    launched = np.flatnonzero(trace.operations.launch >= 0)
    found[launched] = innermost_range(trace, rows, trace.operations.launch[launched])
    return found


def _forward_of_far_ranges(trace: Trace, named: NamedRanges, outer: Ints, op_range: Ints) -> Ints:
    """Return, for each range, the forward that its operations belong to though it lies in none on its own thread.

    A load belongs where its event is waited for; anything else where its range starts.
    """
    ranges = trace.ranges
    found = np.full(len(ranges), -1, dtype=np.int64)
    far = np.unique(op_range[op_range >= 0])
    process = np.array([thread.process for thread in trace.threads], dtype=np.int64)
    for one in np.unique(process[ranges.thread[outer]]):
        own = outer[process[ranges.thread[outer]] == one]
        mine = far[process[ranges.thread[far]] == one]
        at = intervals.innermost(ranges.start[own], ranges.end[own], ranges.start[mine])
        found[mine] = np.where(at >= 0, own[at], -1)
    loads = far[named.meaning[far] == Named.LOAD]
    waited = _forward_of_waits(trace, outer, op_range, loads)
    found[loads] = np.where(waited >= 0, waited, found[loads])
    return found


def _forward_of_waits(trace: Trace, outer: Ints, op_range: Ints, loads: Ints) -> Ints:
    """Return, for each load range, the forward that first waits for the event recorded after its operations, or -1."""
    found = np.full(len(loads), -1, dtype=np.int64)
    pairs = pair_waits(trace)
    if not len(loads) or not (pairs >= 0).any():
        return found
    wait_forward = innermost_range(trace, outer, trace.event_waits.call)
    wait_forward[trace.event_waits.call < 0] = -1
    forward_of_record: dict[int, int] = {}
    for record, forward in zip(pairs.tolist(), wait_forward.tolist(), strict=True):
        if record >= 0 and forward >= 0:
            forward_of_record.setdefault(record, forward)
    records = rows_by_stream(trace.event_records, len(trace.streams))
    operations = trace.operations
    by_range = np.argsort(op_range, kind="stable")
    sorted_range = op_range[by_range]
    for position, row in enumerate(loads.tolist()):
        low, high = np.searchsorted(sorted_range, (row, row + 1))
        own = by_range[low:high]
        last = own[np.argmax(operations.launch[own])]
        candidates = records[operations.stream[last]]
        after = np.searchsorted(trace.event_records.call[candidates], operations.launch[last], side="right")
        if after < len(candidates):
            found[position] = forward_of_record.get(int(candidates[after]), -1)
    return found
