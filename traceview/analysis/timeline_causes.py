"""What each hole of a forward waited for: the operation, the call or the range that ran when it began."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.timeline_rows import operation_names
from traceview.model import CallKind, Kind
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.accounting import Holes
    from traceview.analysis.busy import Busy
    from traceview.analysis.forwards import Forward
    from traceview.analysis.timeline_rows import Names
    from traceview.model import Ints

    Culprits = Callable[["_Where", int], tuple[Ints, Ints, Ints]]


class _Where:
    """One forward, and where each of its holes stands."""

    def __init__(self, busy: Busy, forward: Forward, holes: Holes) -> None:
        self.busy, self.trace, self.forward = busy, busy.trace, forward
        self.stream = self.trace.operations.stream[holes.before]
        launch = self.trace.operations.launch[holes.before]
        self.thread = np.full(len(launch), -1, dtype=np.int64)
        self.thread[launch >= 0] = self.trace.calls.thread[launch[launch >= 0]]

    def operations(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        """Return start, end and name code of operations."""
        operations = self.trace.operations
        return operations.start[rows], operations.end[rows], operation_names(self.trace, rows)

    def calls(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        calls = self.trace.calls
        return calls.start[rows], calls.end[rows], calls.name[rows]

    def ranges(self, rows: Ints) -> tuple[Ints, Ints, Ints]:
        ranges = self.trace.ranges
        return ranges.start[rows], ranges.end[rows], ranges.name[rows]


def name_causes(busy: Busy, forward: Forward, holes: Holes, names: Names) -> Ints:
    """Return, for each hole, the index in ``names`` of what was in the way when it began, or -1.

    A load's holes name no cause: they wait for the layer that the hole belongs to. ``launch`` has none.
    """
    where = _Where(busy, forward, holes)
    code = np.full(len(holes.start), -1, dtype=np.int64)
    for category, (by_stream, culprits) in _CULPRITS.items():
        chosen = np.flatnonzero(holes.category == CATEGORIES.index(category))
        keys = (where.stream if by_stream else where.thread)[chosen]
        for key in np.unique(keys).tolist():
            own = chosen[keys == key]
            start, end, name = culprits(where, key)
            order = np.argsort(start, kind="stable")
            at = intervals.innermost(start[order], end[order], holes.start[own])
            code[own] = np.where(at >= 0, name[order][np.maximum(at, 0)] if len(name) else -1, -1)
    return names.index(code)


def _on_stream(where: _Where, stream: int) -> tuple[Ints, Ints, Ints]:
    return where.operations(where.busy.operations_on(stream))


def _copies_elsewhere(where: _Where, stream: int) -> tuple[Ints, Ints, Ints]:
    operations = where.trace.operations
    return where.operations(np.flatnonzero((operations.kind == Kind.COPY) & (operations.stream != stream)))


def _kernels(where: _Where, stream: int) -> tuple[Ints, Ints, Ints]:
    own = where.trace.operation_device() == where.forward.device
    return where.operations(np.flatnonzero((where.trace.operations.kind == Kind.KERNEL) & own))


def _calls_of(kind: CallKind) -> Culprits:
    def calls(where: _Where, thread: int) -> tuple[Ints, Ints, Ints]:
        own = where.busy.calls_on(thread)
        return where.calls(own[where.busy.call_kinds[own] == kind])

    return calls


def _submissions(where: _Where, thread: int) -> tuple[Ints, Ints, Ints]:
    """Return the ranges of a thread, or where it has none its asynchronous copy calls."""
    named = _ranges_of(where, thread)
    return named if len(named[0]) else _calls_of(CallKind.ASYNC_COPY)(where, thread)


def _ranges_of(where: _Where, thread: int) -> tuple[Ints, Ints, Ints]:
    return where.ranges(np.flatnonzero(where.trace.ranges.thread == thread))


_CULPRITS: dict[str, tuple[bool, Culprits]] = {
    "stream_queue": (True, _on_stream),
    "engine_queue": (True, _copies_elsewhere),
    "sync": (False, _calls_of(CallKind.SYNC)),
    "implicit_sync": (False, _calls_of(CallKind.BLOCKING)),
    "submit": (False, _submissions),
    "host": (False, _ranges_of),
    "sm_busy": (True, _kernels),
}
"""By category: whether the culprits depend on the waiting stream or on the launching thread, and what they can be."""
