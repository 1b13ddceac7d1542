"""Calls that block the host: what they are, what they cost the GPU, and whether anybody meant them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.busy import Busy
from traceview.analysis.copies import direction_name
from traceview.analysis.naming import compile_pattern
from traceview.analysis.places import used
from traceview.analysis.roles import Role
from traceview.analysis.spans import innermost_range
from traceview.analysis.stack_names import written_stacks
from traceview.analysis.sync_costs import find_idle_after
from traceview.model import CallKind, Direction
from traceview.report import Sync

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.accounting import Accounting
    from traceview.analysis.forwards import Forward
    from traceview.model import Flags, Ints, Trace

READBACK_BYTES = 64
"""A device-to-host copy up to this size that is waited for at once is a scalar read back."""

EXPLICIT, IMPLICIT, READBACK = "explicit", "implicit", "scalar_readback"


@dataclass(frozen=True)
class BlockingCalls:
    """Blocking calls in start order, arrays of one length; a read-back's copy and wait are one."""

    call: Ints
    """row of ``Trace.calls``: the call that waits"""
    start: Ints
    """when it began; of a read-back, when its copy was submitted"""
    blocked: Ints
    """ns inside the call; of a read-back, inside both"""
    previous: Ints
    """row of the call before it on its thread that submitted or waited for something, or -1"""
    readback: Flags
    explicit: Flags
    """whether the call says by its name that it waits"""
    direction: Ints
    """:class:`~traceview.model.Direction` of what it copied, or ``OTHER``"""
    forward: Ints
    """index of the forward that it lies in, or -1"""
    boundary: Flags
    """whether it came after its forward's last compute launch"""
    allowed: Flags
    """whether an allow-listed range encloses it"""
    cost: Ints
    """ns of idle GPU that it caused, 0 outside any forward"""


def find_blocking_calls(
    trace: Trace,
    forwards: Sequence[Forward],
    accountings: Sequence[Accounting],
    allow: str | None = None,
    busy: Busy | None = None,
) -> BlockingCalls:
    """Return every blocking call; ``allow`` is an expression for ranges in which they are meant.

    Calls are found by their names and by the memory that they copy, never by the synchronisation table, which lacks
    many of them.
    """
    busy = busy or Busy(trace)
    call, copy = _merge_readbacks(trace, busy)
    start = trace.calls.start[np.where(copy >= 0, copy, call)]
    order = np.argsort(start, kind="stable")
    call, copy, start = call[order], copy[order], start[order]
    blocked = _duration(trace, call) + np.where(copy >= 0, _duration(trace, copy), 0)
    forward, boundary = _place(trace, forwards, call, start)
    return BlockingCalls(
        call=call,
        start=start,
        blocked=blocked,
        previous=_previous(trace, busy, call),
        readback=copy >= 0,
        explicit=trace.calls.kind[call] == CallKind.SYNC,
        direction=_directions(trace, np.where(copy >= 0, copy, call)),
        forward=forward,
        boundary=boundary,
        allowed=_allowed(trace, call, allow),
        cost=_costs(trace, forwards, accountings, (call, start, forward)),
    )


def list_syncs(trace: Trace, found: BlockingCalls) -> tuple[Sync, ...]:
    """Return blocking calls grouped by everything but their times, the costliest first."""
    ranges = innermost_range(trace, np.arange(len(trace.ranges)), found.call)
    range_name = np.concatenate((trace.ranges.name, [-1]))[ranges]
    written, texts = written_stacks(trace)
    columns = (
        trace.calls.name[found.call],
        trace.calls.kind[found.call],
        found.readback,
        found.direction,
        found.forward,
        found.boundary,
        found.allowed,
        range_name,
        written[trace.calls.stack[found.call]],
    )
    order, cuts = _groups(columns)
    # each group's first call, so that groups of equal cost stand in the order of their first calls
    listed = [
        (int(rows[0]), _sync(trace, [int(column[rows[0]]) for column in columns], _totals(found, rows), texts))
        for rows in (np.split(order, cuts) if len(order) else [])
    ]
    by_first = [sync for _, sync in sorted(listed, key=lambda pair: pair[0])]
    return tuple(sorted(by_first, key=lambda sync: (-(sync.cost_ns or 0), -sync.blocked_ns, sync.api, -sync.count)))


def _groups(columns: Sequence[Ints | Flags]) -> tuple[Ints, Ints]:
    """Return the rows in an order in which rows that agree in all columns follow each other, and where groups begin."""
    order = np.lexsort(columns)
    changes = np.zeros(max(len(order) - 1, 0), dtype=bool)
    for column in columns:
        changes |= column[order[1:]] != column[order[:-1]]
    return order, np.flatnonzero(changes) + 1


def _totals(found: BlockingCalls, rows: Ints) -> list[int]:
    """Return how many calls there are, how long they blocked and what they cost."""
    return [len(rows), int(found.blocked[rows].sum()), int(found.cost[rows].sum())]


def _sync(trace: Trace, key: list[int], total: list[int], texts: Sequence[tuple[str, ...] | None]) -> Sync:
    name, kind, readback, direction, forward, boundary, allowed, range_name, where = key
    inside = forward >= 0
    return Sync(
        api=trace.names[name] if name >= 0 else "unknown",
        kind=READBACK if readback else EXPLICIT if kind == CallKind.SYNC else IMPLICIT,
        forward=forward if inside else None,
        count=total[0],
        accidental=not boundary and not allowed if inside else None,
        boundary=bool(boundary),
        blocked_ns=total[1],
        cost_ns=total[2] if inside else None,
        range_name=trace.names[range_name] if range_name >= 0 else None,
        where=texts[where] or None,
        direction=direction_name(direction) if direction != Direction.OTHER else None,
    )


def _merge_readbacks(trace: Trace, busy: Busy) -> tuple[Ints, Ints]:
    """Return the blocking calls, and for each the copy call that it reads a scalar back for, or -1.

    A read-back is a small device-to-host copy whose thread next waits for the copy's stream; between the two it
    neither submits nor waits for anything else.
    """
    operations, calls, kinds = trace.operations, trace.calls, busy.call_kinds
    blocking = (kinds == int(CallKind.SYNC)) | (kinds == int(CallKind.BLOCKING))
    back = np.flatnonzero(operations.direction == int(Direction.D2H))
    small = back[(operations.n_bytes[back] <= READBACK_BYTES) & (operations.launch[back] >= 0)]
    if not len(small):
        rows = np.flatnonzero(blocking)
        return rows, np.full(len(rows), -1, dtype=np.int64)
    copy_stream = np.full(len(calls), -1, dtype=np.int64)
    copy_stream[operations.launch[small]] = operations.stream[small]
    sync_stream = np.full(len(calls), -1, dtype=np.int64)
    known = trace.stream_syncs.call >= 0
    sync_stream[trace.stream_syncs.call[known]] = trace.stream_syncs.stream[known]
    of_stream = np.array([name.endswith("StreamSynchronize") for name in trace.names] + [False], dtype=bool)
    copy = np.full(len(calls), -1, dtype=np.int64)
    for thread in np.unique(calls.thread[operations.launch[small]]).tolist():
        own = busy.calls_on(thread)
        own = own[kinds[own] != CallKind.OTHER]
        first, then = own[:-1], own[1:]
        same = (sync_stream[then] == copy_stream[first]) | (sync_stream[then] < 0)
        reads = (copy_stream[first] >= 0) & (calls.kind[first] == CallKind.ASYNC_COPY)
        pairs = reads & of_stream[calls.name[then]] & same
        copy[then[pairs]] = first[pairs]
    blocking[copy[copy >= 0]] = False
    rows = np.flatnonzero(blocking)
    return rows, copy[rows]


def _previous(trace: Trace, busy: Busy, call: Ints) -> Ints:
    """Return, for each call of any kind but ``OTHER``, the one before it on its thread that is neither, or -1."""
    before = np.empty(len(call), dtype=np.int64)
    threads = trace.calls.thread[call]
    for thread in used(threads):
        own = busy.calls_on(thread)
        own = own[busy.call_kinds[own] != int(CallKind.OTHER)]
        mine = np.flatnonzero(threads == thread)
        at = np.searchsorted(own, call[mine])
        before[mine] = np.where(at > 0, own[at - 1], -1)
    return before


def _duration(trace: Trace, call: Ints) -> Ints:
    duration: Ints = trace.calls.end[call] - trace.calls.start[call]
    return duration


def _directions(trace: Trace, calls: Ints) -> Ints:
    """Return which way each call copied, ``OTHER`` where it copied nothing."""
    direction = np.full(len(trace.calls), int(Direction.OTHER), dtype="int8")
    copies = (trace.operations.direction != Direction.OTHER) & (trace.operations.launch >= 0)
    direction[trace.operations.launch[copies]] = trace.operations.direction[copies]
    return direction[calls]


def _place(trace: Trace, forwards: Sequence[Forward], call: Ints, start: Ints) -> tuple[Ints, Flags]:
    """Return the forward that each blocking call lies in, or -1, and whether it came after the last compute launch."""
    forward_of = np.full(len(call), -1, dtype=np.int64)
    boundary = np.zeros(len(call), dtype=bool)
    thread = trace.calls.thread[call]
    by_index: dict[int, list[Forward]] = {}
    for forward in forwards:
        by_index.setdefault(forward.index, []).append(forward)
    for index, entries in by_index.items():
        launches = np.concatenate([_launches(trace, forward.operations) for forward in entries])
        computes = np.concatenate([_launches(trace, forward.rows(Role.COMPUTE)) for forward in entries])
        if not len(computes):
            continue
        low, high = np.searchsorted(start, (entries[0].start, entries[0].end))
        inside = low + np.flatnonzero(np.isin(thread[low:high], used(trace.calls.thread[launches])))
        forward_of[inside] = index
        boundary[inside] = start[inside] >= trace.calls.start[computes].max()
    return forward_of, boundary


def _allowed(trace: Trace, call: Ints, allow: str | None) -> Flags:
    """Return which calls lie in a range of their thread whose name matches ``allow``."""
    allowed = np.zeros(len(call), dtype=bool)
    if allow is None:
        return allowed
    pattern = compile_pattern("--allow-sync", allow)
    names = np.array([bool(pattern.search(name)) for name in trace.names], dtype=bool)
    return innermost_range(trace, np.flatnonzero(names[trace.ranges.name]), call) >= 0


def _costs(
    trace: Trace,
    forwards: Sequence[Forward],
    accountings: Sequence[Accounting],
    placed: tuple[Ints, Ints, Ints],
) -> Ints:
    """Return how much idle GPU time each call caused, over all devices that its forward computes on."""
    call, start, forward_of = placed
    cost = np.zeros(len(call), dtype=np.int64)
    order = np.argsort(forward_of, kind="stable")
    for forward, accounting in zip(forwards, accountings, strict=True):
        low, high = np.searchsorted(forward_of[order], (forward.index, forward.index + 1))
        mine = order[low:high]
        for part in find_idle_after(trace, forward, accounting, call[mine], start[mine]):
            cost[mine[part.rows]] += part.cost
    return cost


def _launches(trace: Trace, rows: Ints) -> Ints:
    launch = trace.operations.launch[rows]
    return launch[launch >= 0]
