"""Gives every nanosecond of a forward to what it was spent on.

Time under a compute operation is ``compute``. Each idle gap before a compute operation is given away in a fixed order
of causes; each takes what the earlier ones left. The eleven categories sum to the makespan exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.busy import Busy
from traceview.analysis.places import used
from traceview.analysis.roles import Role
from traceview.intervals import Intervals
from traceview.model import CallKind, Direction, Kind
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traceview.analysis.forwards import Forward
    from traceview.model import Flags, Ints, Trace

SMALL_COPY_BYTES = 1 << 20
"""A copy up to this size on the compute stream can be stuck behind a load burst; a larger one is a load itself."""


@dataclass(frozen=True)
class Holes:
    """Idle time of a forward's compute, cut by cause: disjoint, in time order, arrays of one length."""

    start: Ints
    end: Ints
    category: Ints
    """index into ``CATEGORIES``"""
    before: Ints
    """row of ``Trace.operations``: the compute operation that came after the gap"""

    @property
    def lengths(self) -> Ints:
        """Return the length of each hole in ns."""
        return self.end - self.start


@dataclass(frozen=True)
class Accounting:
    """Where a forward's time went."""

    t0_ns: int
    """first start of a load or compute operation"""
    t1_ns: int
    """last end of a compute operation"""
    categories: dict[str, int]
    """ns by category, in the order of ``CATEGORIES``; sums to the makespan"""
    first_of_layer: dict[int, int]
    """row of ``Trace.operations`` of each layer's first compute operation, in the order in which they start"""
    stall_ns: dict[int, int]
    """idle ns before each layer's first compute operation"""
    exposed_ns: dict[int, int]
    """``load_copy`` and ``load_gap`` of each layer"""
    holes: Holes

    @property
    def makespan_ns(self) -> int:
        """Return t1 - t0."""
        return self.t1_ns - self.t0_ns


def account(trace: Trace, forward: Forward, busy: Busy | None = None) -> Accounting:
    """Account for one forward on one device; ``busy`` shares interval sets between the forwards of one trace.

    Compute operations are walked in start order and each idle gap before one is given to ten causes in turn, each
    taking what is left (MEASURES.md, "The accounting").
    """
    operations = trace.operations
    compute = forward.rows(Role.COMPUTE)
    loads = forward.rows(Role.LOAD)
    t0 = int(min(operations.start[compute[0]], operations.start[loads].min(initial=operations.start[compute[0]])))
    reach = np.maximum.accumulate(operations.end[compute])
    begin = np.concatenate(([t0], reach[:-1]))
    idle = np.flatnonzero(operations.start[compute] > begin)
    gaps = _Gaps(begin[idle], operations.start[compute[idle]], compute[idle])
    first = _first_of_layer(forward)
    holes = _give_away(trace, forward, busy or Busy(trace), gaps, first)
    spent = np.zeros(len(CATEGORIES), dtype=np.int64)
    np.add.at(spent, holes.category, holes.lengths)
    spent[0] = int(reach[-1]) - t0 - int(spent.sum())
    idle_ns = (gaps.end - gaps.start).tolist()
    return Accounting(
        t0_ns=t0,
        t1_ns=int(reach[-1]),
        categories=dict(zip(CATEGORIES, spent.tolist(), strict=True)),
        first_of_layer=first,
        stall_ns={layer: idle_ns[at] if at >= 0 else 0 for layer, at in zip(first, gaps.ahead_of(first), strict=True)},
        exposed_ns=_exposed(holes, first),
        holes=holes,
    )


@dataclass(frozen=True)
class _Gaps:
    """Idle gaps ``[start, end)``, disjoint and in order, and the compute operation after each."""

    start: Ints
    end: Ints
    before: Ints

    def of(self, chosen: Flags, until: Ints | None = None) -> Intervals:
        """Return the chosen gaps, each cut off at its ``until``."""
        end = self.end if until is None else np.minimum(self.end, until)
        kept = chosen & (end > self.start)
        return Intervals(self.start[kept], end[kept])

    def by(self, keys: Ints, chosen: Flags, until: Ints | None = None) -> dict[int, Intervals]:
        """Return the chosen gaps of each stream or thread that has some, each cut off at its ``until``."""
        parts = ((key, self.of(chosen & (keys == key), until)) for key in used(keys[chosen]))
        return {key: part for key, part in parts if len(part.start)}

    def ahead_of(self, first: dict[int, int]) -> list[int]:
        """Return which gap comes before each of some operations by layer, or -1."""
        rows = np.array([*first.values()], dtype=np.int64)
        at = np.searchsorted(self.before, rows)
        found: list[int] = np.where(np.append(self.before, -1)[at] == rows, at, -1).tolist()
        return found


class _Ledger:
    """What is left of the gaps, and what was given to which category."""

    def __init__(self, gaps: _Gaps) -> None:
        self._gaps = gaps
        self._left = Intervals(gaps.start, gaps.end)
        self._given: list[tuple[str, Intervals]] = []

    def give(self, category: str, to: Intervals) -> None:
        """Give what is left inside ``to`` to a category."""
        given = intervals.intersect(self._left, to)
        if len(given.start):
            self._given.append((category, given))
            self._left = intervals.subtract(self._left, given)

    def holes(self, rest: str) -> Holes:
        """Return all that was given away, in time order; what is left goes to the category ``rest``."""
        given = [*self._given, (rest, self._left)]
        start = np.concatenate([part.start for _, part in given])
        end = np.concatenate([part.end for _, part in given])
        category = np.repeat([CATEGORIES.index(name) for name, _ in given], [len(part.start) for _, part in given])
        order = np.argsort(start, kind="stable")
        start = start[order]
        gap = np.searchsorted(self._gaps.start, start, side="right") - 1
        return Holes(start, end[order], category[order], self._gaps.before[gap])


def _give_away(trace: Trace, forward: Forward, busy: Busy, gaps: _Gaps, first: dict[int, int]) -> Holes:
    operations = trace.operations
    stream = operations.stream[gaps.before]
    launch = operations.launch[gaps.before]
    launched = launch >= 0
    until = trace.calls.start[launch]  # of a launch that is none, some other's: those are not chosen
    by_stream = gaps.by(stream, np.ones(len(stream), dtype=bool))
    by_thread = gaps.by(trace.calls.thread[launch], launched, until)
    ledger = _Ledger(gaps)

    waiting = _until_loaded(trace, forward, gaps, first)
    ledger.give("load_copy", intervals.intersect(waiting, _span(trace, forward.rows(Role.LOAD))))
    ledger.give("load_gap", waiting)
    ledger.give("stream_queue", _during(by_stream, busy.stream))
    ledger.give("engine_queue", _during(by_stream, lambda one: _engine_waits(busy, one, by_stream[one])))
    ledger.give("sync", _during(by_thread, lambda one: busy.calls(one, CallKind.SYNC)))
    ledger.give("implicit_sync", _during(by_thread, lambda one: busy.calls(one, CallKind.BLOCKING)))
    ledger.give("submit", _during(by_thread, lambda one: busy.submitting(forward.submissions, one)))
    ledger.give("submit", _during(by_thread, lambda one: busy.calls(one, CallKind.ASYNC_COPY)))
    ledger.give("host", gaps.of(launched, until))
    ledger.give("sm_busy", busy.kernels(forward.process, forward.device))
    return ledger.holes(rest="launch")


def _during(gaps: Mapping[int, Intervals], sets: Callable[[int], Intervals]) -> Intervals:
    """Return, over all keys, what a key's gaps have in common with its set; no two keys share a gap."""
    parts = []
    for key, own in gaps.items():
        common = intervals.intersect(own, intervals.clip(sets(key), int(own.start[0]), int(own.end[-1])))
        if len(common.start):
            parts.append(common)
    if not parts:
        return intervals.empty()
    return intervals.union(np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts]))


def _until_loaded(trace: Trace, forward: Forward, gaps: _Gaps, first: dict[int, int]) -> Intervals:
    """Return the part of each gap before a layer's first compute operation in which that layer's load was not done."""
    until = np.full(len(gaps.before), np.iinfo(np.int64).min, dtype=np.int64)
    for layer, at in zip(first, gaps.ahead_of(first), strict=True):
        loads = forward.layer_rows(layer, Role.LOAD)
        if at >= 0 and len(loads):
            until[at] = trace.operations.end[loads].max()
    return gaps.of(np.ones(len(until), dtype=bool), until)


def _engine_waits(busy: Busy, stream: int, own: Intervals) -> Intervals:
    """Return when small copies of a stream, launched and not started, waited while other streams' copies ran.

    Only copies that start inside a gap before an operation of that stream count, and only their wait inside the gap.
    """
    operations = busy.trace.operations
    rows = busy.operations_on(stream)
    low, high = np.searchsorted(rows, np.searchsorted(operations.start, (int(own.start[0]), int(own.end[-1]))))
    rows = rows[low:high]
    rows = rows[(operations.kind[rows] == Kind.COPY) & (operations.n_bytes[rows] <= SMALL_COPY_BYTES)]
    rows = rows[operations.launch[rows] >= 0]
    if not len(rows):
        return intervals.empty()
    gap = intervals.covering(own, operations.start[rows])
    rows, gap = rows[gap >= 0], gap[gap >= 0]
    since = np.maximum(busy.trace.calls.start[operations.launch[rows]], own.start[gap])
    parts = [intervals.empty()]
    for direction in np.unique(operations.direction[rows]).tolist():
        same = operations.direction[rows] == direction
        waits = intervals.union(since[same], operations.start[rows[same]])
        parts.append(intervals.intersect(waits, busy.copies_beside(stream, Direction(direction))))
    return intervals.union(np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts]))


def _first_of_layer(forward: Forward) -> dict[int, int]:
    """Return the row of each layer's first compute operation, in the order in which they start."""
    rows = ((layer, forward.layer_rows(layer, Role.COMPUTE)) for layer in forward.layers)
    first = [(int(own[0]), layer) for layer, own in rows if len(own)]
    return {layer: row for row, layer in sorted(first)}


def _exposed(holes: Holes, first: dict[int, int]) -> dict[int, int]:
    """Return how long each layer's first compute operation waited for its load."""
    load = (holes.category == CATEGORIES.index("load_copy")) | (holes.category == CATEGORIES.index("load_gap"))
    rows, group = np.unique(holes.before[load], return_inverse=True)
    total = np.zeros(len(rows), dtype=np.int64)
    np.add.at(total, group, holes.lengths[load])
    waited = dict(zip(rows.tolist(), total.tolist(), strict=True))
    return {layer: waited.get(row, 0) for layer, row in first.items()}


def _span(trace: Trace, rows: Ints) -> Intervals:
    return intervals.union(trace.operations.start[rows], trace.operations.end[rows])
