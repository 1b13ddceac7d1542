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
from traceview.analysis.roles import Role
from traceview.intervals import Intervals
from traceview.model import CallKind, Direction, Kind
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.forwards import Forward
    from traceview.model import Flags, Ints, Trace

SMALL_COPY_BYTES = 1 << 20
"""A copy up to this size on the compute stream can be stuck behind a load burst; a larger one is a load itself."""

_FEW = 1 << 10
"""Up to so many keys, Python's own set is faster than numpy's."""


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
    taking what is left (MEASURES, section 3).
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
    leads = np.flatnonzero(np.isin(gaps.before, [*first.values()]))
    stall = dict(zip(gaps.before[leads].tolist(), (gaps.end - gaps.start)[leads].tolist(), strict=True))
    return Accounting(
        t0_ns=t0,
        t1_ns=int(reach[-1]),
        categories=dict(zip(CATEGORIES, spent.tolist(), strict=True)),
        first_of_layer=first,
        stall_ns={layer: stall.get(row, 0) for layer, row in first.items()},
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


class _Ledger:
    """What is left of the gaps, and what was given to which category."""

    def __init__(self, gaps: _Gaps) -> None:
        self._gaps = gaps
        self._left = Intervals(gaps.start, gaps.end)
        self._given: list[tuple[str, Intervals]] = [("launch", intervals.empty())]

    def give(self, category: str, to: Intervals) -> None:
        """Give what is left inside ``to`` to a category."""
        if not len(self._left.start) or not len(to.start):
            return
        self._given.append((category, intervals.intersect(self._left, to)))
        self._left = intervals.subtract(self._left, to)

    def give_rest(self, category: str) -> None:
        """Give all that is left to a category."""
        self.give(category, self._left)

    def holes(self) -> Holes:
        """Return all that was given away, in time order."""
        start = np.concatenate([part.start for _, part in self._given])
        end = np.concatenate([part.end for _, part in self._given])
        category = np.repeat(
            [CATEGORIES.index(name) for name, _ in self._given], [len(part.start) for _, part in self._given]
        )
        order = np.argsort(start, kind="stable")
        start = start[order]
        gap = np.searchsorted(self._gaps.start, start, side="right") - 1
        return Holes(start, end[order], category[order], self._gaps.before[gap])


def _give_away(trace: Trace, forward: Forward, busy: Busy, gaps: _Gaps, first: dict[int, int]) -> Holes:
    operations = trace.operations
    stream = operations.stream[gaps.before]
    launch = operations.launch[gaps.before]
    launched = launch >= 0
    until = trace.calls.start[launch] if launched.any() else launch
    thread = np.where(launched, trace.calls.thread[launch], -1) if launched.any() else launch
    ledger = _Ledger(gaps)

    waiting = _until_loaded(trace, forward, gaps, first)
    ledger.give("load_copy", intervals.intersect(waiting, _span(trace, forward.rows(Role.LOAD))))
    ledger.give("load_gap", waiting)
    ledger.give("stream_queue", _per(stream, lambda one: (gaps.of(stream == one), busy.stream(one))))
    ledger.give(
        "engine_queue", _per(stream, lambda one: (gaps.of(stream == one), _engine_waits(busy, one, gaps, stream)))
    )

    def unlaunched(doing: Callable[[int], Intervals]) -> Intervals:
        return _per(thread[launched], lambda one: (gaps.of(thread == one, until), doing(one)))

    ledger.give("sync", unlaunched(lambda one: busy.calls(one, CallKind.SYNC)))
    ledger.give("implicit_sync", unlaunched(lambda one: busy.calls(one, CallKind.BLOCKING)))
    ledger.give("submit", unlaunched(lambda one: busy.submitting(forward.submissions, one)))
    ledger.give("submit", unlaunched(lambda one: busy.calls(one, CallKind.ASYNC_COPY)))
    ledger.give("host", gaps.of(launched, until))
    ledger.give("sm_busy", busy.kernels(forward.process, forward.device))
    ledger.give_rest("launch")
    return ledger.holes()


def _per(keys: Ints, sets: Callable[[int], tuple[Intervals, Intervals]]) -> Intervals:
    """Return, over all distinct keys, what each key's two sets have in common; the keys' first sets are disjoint."""
    parts = [intervals.empty()]
    for key in sorted(set(keys.tolist())) if len(keys) < _FEW else np.unique(keys).tolist():
        own, other = sets(key)
        if len(own.start):
            parts.append(intervals.intersect(own, intervals.clip(other, int(own.start[0]), int(own.end[-1]))))
    if len(parts) == 1:
        return parts[0]
    return intervals.union(np.concatenate([part.start for part in parts]), np.concatenate([part.end for part in parts]))


def _until_loaded(trace: Trace, forward: Forward, gaps: _Gaps, first: dict[int, int]) -> Intervals:
    """Return the part of each gap before a layer's first compute operation in which that layer's load was not done."""
    until = np.full(len(gaps.before), np.iinfo(np.int64).min, dtype=np.int64)
    rows = np.array([*first.values()], dtype=np.int64)
    order = np.argsort(rows)
    waits = np.flatnonzero(np.isin(gaps.before, rows))
    layers = np.array([*first], dtype=np.int64)[order[np.searchsorted(rows[order], gaps.before[waits])]]
    until[waits] = _loaded(trace, forward, layers)
    return gaps.of(np.ones(len(until), dtype=bool), until)


def _loaded(trace: Trace, forward: Forward, layers: Ints) -> Ints:
    """Return when the last load operation of each layer ended, long ago where it has none."""
    loads = forward.role == Role.LOAD
    known, group = np.unique(forward.layer[loads], return_inverse=True)
    done = np.full(len(known) + 1, np.iinfo(np.int64).min, dtype=np.int64)
    np.maximum.at(done, group, trace.operations.end[forward.operations[loads]])
    at = np.searchsorted(known, layers)
    return np.where(np.append(known, -1)[at] == layers, done[at], done[-1])


def _engine_waits(busy: Busy, stream: int, gaps: _Gaps, streams: Ints) -> Intervals:
    """Return when small copies of a stream, launched and not started, waited while other streams' copies ran.

    Only copies that start inside a gap before an operation of that stream count, and only their wait inside the gap.
    """
    operations = busy.trace.operations
    own = gaps.of(streams == stream)
    rows = busy.operations_on(stream)
    low, high = np.searchsorted(operations.start[rows], (int(own.start[0]), int(own.end[-1])))
    rows = rows[low:high]
    rows = rows[(operations.kind[rows] == Kind.COPY) & (operations.n_bytes[rows] <= SMALL_COPY_BYTES)]
    rows = rows[operations.launch[rows] >= 0]
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
    compute = (forward.role == Role.COMPUTE) & (forward.layer >= 0)
    layers, index = np.unique(forward.layer[compute], return_index=True)
    order = np.argsort(index)
    return dict(zip(layers[order].tolist(), forward.operations[compute][index[order]].tolist(), strict=True))


def _exposed(holes: Holes, first: dict[int, int]) -> dict[int, int]:
    """Return how long each layer's first compute operation waited for its load."""
    load = np.isin(holes.category, (CATEGORIES.index("load_copy"), CATEGORIES.index("load_gap")))
    rows, group = np.unique(holes.before[load], return_inverse=True)
    total = np.zeros(len(rows), dtype=np.int64)
    np.add.at(total, group, holes.lengths[load])
    waited = dict(zip(rows.tolist(), total.tolist(), strict=True))
    return {layer: waited.get(row, 0) for layer, row in first.items()}


def _span(trace: Trace, rows: Ints) -> Intervals:
    return intervals.union(trace.operations.start[rows], trace.operations.end[rows])
