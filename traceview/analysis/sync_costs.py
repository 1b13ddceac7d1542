"""How much idle GPU time a blocking call causes: its wait, and the restart that it forces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.places import used
from traceview.analysis.roles import Role
from traceview.intervals import Intervals
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.analysis.accounting import Accounting
    from traceview.analysis.forwards import Forward
    from traceview.model import Ints, Trace

_COSTLY = np.isin(CATEGORIES, ("sync", "implicit_sync", "host", "launch"))
"""which categories a blocking call can have caused"""
_NEVER = np.iinfo(np.int64).max // 2


@dataclass(frozen=True)
class IdleAfter:
    """What the blocking calls of one thread cost a forward on one device: arrays of one length."""

    rows: Ints
    """which of the calls that were asked for"""
    cost: Ints
    """idle ns that each of them caused"""
    caused: Intervals
    """that idle time, of all these calls"""
    by: Ints
    """for each member of ``caused``, the position in ``rows`` of the call that caused it"""


def find_idle_after(
    trace: Trace, forward: Forward, accounting: Accounting, call: Ints, start: Ints
) -> Iterator[IdleAfter]:
    """Yield, thread by thread, the idle time that each blocking call caused; calls are in start order.

    A call's window lasts from its start until the queue is full again or the next blocking call. Only idle time before
    operations that its own thread launched after it began counts: gaps between operations that were queued already are
    not its doing, and costs of different calls never overlap.
    """
    thread = trace.calls.thread[call]
    for one in used(thread):
        rows = np.flatnonzero(thread == one)
        idle, launched = _idle_of(trace, accounting, one)
        until = np.minimum(np.append(start[rows][1:], _NEVER), _queue_full(trace, forward, one, start[rows]))
        opened = np.flatnonzero(until > start[rows])
        windows = Intervals(start[rows[opened]], until[opened])
        parts = intervals.intersect(idle, windows)
        by = opened[intervals.covering(windows, parts.start)]
        after = launched[intervals.covering(idle, parts.start)] >= start[rows[by]]
        caused, by = Intervals(parts.start[after], parts.end[after]), by[after]
        cost = np.zeros(len(rows), dtype=np.int64)
        np.add.at(cost, by, caused.end - caused.start)
        yield IdleAfter(rows, cost, caused, by)


def _idle_of(trace: Trace, accounting: Accounting, thread: int) -> tuple[Intervals, Ints]:
    """Return the idle time that a thread's blocking calls can have caused, and when what ended it was launched."""
    holes = accounting.holes
    launch = trace.operations.launch[holes.before]
    own = _COSTLY[holes.category] & (launch >= 0)
    own[own] = trace.calls.thread[launch[own]] == thread
    return Intervals(holes.start[own], holes.end[own]), trace.calls.start[launch[own]]


def _queue_full(trace: Trace, forward: Forward, thread: int, since: Ints) -> Ints:
    """Return, for each moment, when the device next had work queued up behind what it ran.

    That is the end of the operation before the first compute operation that was launched after the moment and whose
    launch ended before its predecessor on the device did.
    """
    operations, calls = trace.operations, trace.calls
    compute = forward.rows(Role.COMPUTE)
    before = np.maximum.accumulate(operations.end[compute])[:-1]
    rows = compute[1:]
    launch = operations.launch[rows]
    queued = launch >= 0
    queued[queued] = (calls.thread[launch[queued]] == thread) & (calls.end[launch[queued]] < before[queued])
    # operations are in start order: the first of those launched late enough has the smallest end before it
    return _first_at_or_after(calls.start[launch[queued]], before[queued], since)


def _first_at_or_after(launched: Ints, value: Ints, since: Ints) -> Ints:
    """Return, for each moment, the smallest value among what was launched then or later; never where nothing was."""
    order = np.argsort(launched, kind="stable")
    smallest = np.append(np.minimum.accumulate(value[order][::-1])[::-1], _NEVER)
    return smallest[np.searchsorted(launched[order], since, side="left")]
