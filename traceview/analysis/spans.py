"""Spans of time that are forwards, by name or by events, and which of them an operation was launched for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.events import pair_waits, rows_by_stream
from traceview.analysis.naming import Named
from traceview.analysis.places import used

if TYPE_CHECKING:
    from traceview.analysis.naming import NamedRanges
    from traceview.model import Ints, Ranges, Trace

_PART = 1 << 17


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
    op_range, op_forward = (innermost_range(trace, rows, trace.operations.launch) for rows in (layered, outer))
    far = np.flatnonzero((op_forward < 0) & (op_range >= 0))
    if len(far):
        op_forward[far] = _forward_of_far_ranges(trace, named, outer, op_range, far)[op_range[far]]
    ranges = trace.ranges
    spans = [
        Span(trace.names[ranges.name[row]], int(ranges.thread[row]), int(ranges.start[row]), int(ranges.end[row]))
        for row in outer.tolist()
    ]
    number = np.full(len(ranges) + 1, -1, dtype="int32")
    number[outer] = np.arange(len(outer))
    # no range is -1, the last row of what is looked up
    return spans, Placement(
        span=number[op_forward],
        meaning=np.append(named.meaning, int(Named.NOTHING)).astype("int8")[op_range],
        layer=np.append(named.layer, -1)[op_range],
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
    """Return, for each call, the innermost of the ranges ``rows`` that it started in on its own thread, or -1.

    A call of -1 is none. Many calls are looked at in parts, whose arrays stay in the processor's cache.
    """
    found = np.full(len(calls), -1, dtype="int32")
    for thread in used(trace.ranges.thread[rows]):
        own = rows[trace.ranges.thread[rows] == thread]
        segments = intervals.cut(trace.ranges.start[own], trace.ranges.end[own])
        own = np.append(own, -1)
        for first in range(0, len(calls), _PART):
            some = calls[first : first + _PART]
            mine = np.flatnonzero((some >= 0) & (trace.calls.thread[some] == thread)) if len(trace.calls) else some[:0]
            found[first + mine] = own[segments.at(trace.calls.start[some[mine]])]
    return found


def _forward_of_far_ranges(trace: Trace, named: NamedRanges, outer: Ints, op_range: Ints, rows: Ints) -> Ints:
    """Return, for each range of the operations ``rows``, the forward that they belong to though it lies in none.

    A load belongs where its event is waited for; anything else where its range starts.
    """
    ranges = trace.ranges
    found = np.full(len(ranges), -1, dtype=np.int64)
    far = np.unique(op_range[rows])
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
    waited = np.flatnonzero((pairs >= 0) & (wait_forward >= 0) & (trace.event_waits.call >= 0))[::-1]
    forward_of_record = np.full(len(trace.event_records), -1, dtype=np.int64)
    forward_of_record[pairs[waited]] = wait_forward[waited]  # of several waits for a record the first, written last
    last = _last_launched(trace, op_range, loads)
    launch, stream = trace.operations.launch[last], trace.operations.stream[last]
    records = rows_by_stream(trace.event_records, len(trace.streams))
    for one in np.unique(stream).tolist():
        mine = np.flatnonzero(stream == one)
        after = np.searchsorted(trace.event_records.call[records[one]], launch[mine], side="right")
        recorded = after < len(records[one])
        found[mine[recorded]] = forward_of_record[records[one][after[recorded]]]
    return found


def _last_launched(trace: Trace, op_range: Ints, ranges: Ints) -> Ints:
    """Return, for each of some ranges (sorted), its operation that was launched last; of several the first to start."""
    rows = np.flatnonzero(np.isin(op_range, ranges))
    group = np.searchsorted(ranges, op_range[rows])
    order = np.lexsort((rows, -trace.operations.launch[rows], group))
    return rows[order[np.searchsorted(group[order], np.arange(len(ranges)))]]
