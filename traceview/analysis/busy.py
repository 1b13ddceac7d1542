"""When streams, threads and the device were busy: sets of intervals that several analyses share.

Each set is made once per trace, on first use.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.model import CallKind, Direction, Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.submissions import Submissions
    from traceview.intervals import Intervals
    from traceview.model import Flags, Ints, Trace


class Busy:
    """Lazily made interval sets of one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._made: dict[tuple[object, ...], Intervals] = {}

    def _once(self, key: tuple[object, ...], rows: Callable[[], tuple[Ints, Ints]]) -> Intervals:
        if key not in self._made:
            self._made[key] = intervals.union(*rows())
        return self._made[key]

    @cached_property
    def _by_stream(self) -> tuple[Ints, Ints]:
        stream = self.trace.operations.stream
        order = _rows_in_order(stream)
        return order, np.searchsorted(stream[order], np.arange(len(self.trace.streams) + 1))

    @cached_property
    def _by_thread(self) -> tuple[Ints, Ints]:
        thread = self.trace.calls.thread
        order = _rows_in_order(thread)
        return order, np.searchsorted(thread[order], np.arange(len(self.trace.threads) + 1))

    def operations_on(self, stream: int) -> Ints:
        """Return the rows of the operations on a stream, in start order."""
        order, bounds = self._by_stream
        return order[bounds[stream] : bounds[stream + 1]]

    def calls_on(self, thread: int) -> Ints:
        """Return the rows of the calls on a thread, in start order."""
        order, bounds = self._by_thread
        return order[bounds[thread] : bounds[thread + 1]]

    def stream(self, stream: int) -> Intervals:
        """Return when a stream ran anything."""
        return self._once(("stream", stream), lambda: self._operation_times(self.operations_on(stream)))

    def kernels(self, process: int, device: int) -> Intervals:
        """Return when kernels ran on a device."""

        def rows() -> tuple[Ints, Ints]:
            streams = self._streams_of(process, device)
            here = streams[self.trace.operations.stream] & (self.trace.operations.kind == Kind.KERNEL)
            return self._operation_times(np.flatnonzero(here))

        return self._once(("kernels", process, device), rows)

    def copies_beside(self, stream: int, direction: Direction) -> Intervals:
        """Return when other streams of a stream's device ran copies in one direction."""

        def rows() -> tuple[Ints, Ints]:
            own = self.trace.streams[stream]
            streams = self._streams_of(own.process, own.device)
            streams[stream] = False
            operations = self.trace.operations
            return self._operation_times(
                np.flatnonzero(streams[operations.stream] & (operations.direction == direction))
            )

        return self._once(("copies", stream, direction), rows)

    def calls(self, thread: int, kind: CallKind) -> Intervals:
        """Return when a thread was inside calls of one kind; copies of pageable memory count as blocking."""

        def rows() -> tuple[Ints, Ints]:
            own = self.calls_on(thread)
            chosen = own[self.call_kinds[own] == kind]
            return self.trace.calls.start[chosen], self.trace.calls.end[chosen]

        return self._once(("calls", thread, kind), rows)

    @cached_property
    def call_kinds(self) -> Ints:
        """What each call does to its thread, with what it copied taken into account: pageable memory blocks."""
        operations = self.trace.operations
        kinds = self.trace.calls.kind.copy()
        pageable = (operations.memory == Memory.PAGEABLE) & (operations.launch >= 0)
        calls = np.unique(operations.launch[pageable])
        kinds[calls[kinds[calls] != CallKind.SYNC]] = CallKind.BLOCKING
        return kinds

    def submitting(self, submissions: Submissions, thread: int) -> Intervals:
        """Return when a thread was submitting loads."""

        def rows() -> tuple[Ints, Ints]:
            own = submissions.thread == thread
            return submissions.start[own], submissions.end[own]

        return self._once(("submitting", id(submissions), thread), rows)

    def _streams_of(self, process: int, device: int) -> Flags:
        return np.array(
            [(stream.process, stream.device) == (process, device) for stream in self.trace.streams], dtype=bool
        )

    def _operation_times(self, rows: Ints) -> tuple[Ints, Ints]:
        return self.trace.operations.start[rows], self.trace.operations.end[rows]


def _rows_in_order(keys: Ints) -> Ints:
    """Return the rows by key, of equal keys as they stand, in four bytes each."""
    order: Ints = np.argsort(keys, kind="stable").astype("int32")
    return order
