"""Which operation each synchronise call of a replayed forward waits for."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceview.model import CallKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.replay import Call, Operation
    from traceview.model import Trace


def add_waits(trace: Trace, calls: dict[int, Call], operations: dict[int, Operation]) -> None:
    """Let synchronise calls end after what was launched before them and had ended when they returned."""
    syncs = [row for row in calls if trace.calls.kind[row] == int(CallKind.SYNC)]
    if not syncs:
        return
    low, high = np.searchsorted(trace.stream_syncs.call, (syncs[0], syncs[-1] + 1))
    synced = dict(
        zip(trace.stream_syncs.call[low:high].tolist(), trace.stream_syncs.stream[low:high].tolist(), strict=True)
    )
    streams = ended_by_stream(operations)
    for row in syncs:
        call = calls[row]
        waited = [streams[synced[row]]] if synced.get(row) in streams else [] if row in synced else streams.values()
        found = [latest for stream in waited if (latest := stream.latest(row, call.end))]
        if found:
            # of operations that ended at once, the one launched first
            end, place = max(found, key=lambda one: (one[0], -one[1][0], -one[1][1]))
            call.waits_for = [place[1]]
            call.duration = call.end - max(call.start, end)


class _Ended:
    """The launched operations of one stream in the order of their launches."""

    def __init__(self, nodes: Sequence[Operation]) -> None:
        self._nodes = nodes
        self._launches = [node.launch for node in nodes]
        self._ends = [node.start + node.duration for node in nodes]
        self._in_turn = all(one <= then for one, then in pairwise(self._ends))

    def latest(self, call: int, until: int) -> tuple[int, tuple[int, int]] | None:
        """Return end, launch and row of the operation that ended last by ``until``, of those launched before a call."""
        launched = bisect_left(self._launches, call)
        if self._in_turn:
            # as they do on a stream: the last that had ended, and the first of those that ended with it
            last = min(launched, bisect_right(self._ends, until)) - 1
            first = bisect_left(self._ends, self._ends[last]) if last >= 0 else -1
        else:
            ended = [at for at in range(launched) if self._ends[at] <= until]
            first = max(ended, key=lambda at: (self._ends[at], -at), default=-1)
        return (self._ends[first], (self._launches[first], self._nodes[first].row)) if first >= 0 else None


def ended_by_stream(operations: dict[int, Operation]) -> dict[int, _Ended]:
    """Return the launched operations of each stream."""
    by_stream: dict[int, list[Operation]] = {}
    for node in sorted(operations.values(), key=lambda one: (one.launch, one.row)):
        if node.launch >= 0:
            by_stream.setdefault(node.stream, []).append(node)
    return {stream: _Ended(nodes) for stream, nodes in by_stream.items()}
