"""Replays a forward's dependency order with other durations, to tell what its makespan would be.

A forward is a graph. Calls follow each other on their thread with the host work between them; operations follow each
other on their stream, wait for events, for their launch, and copies in one direction for each other; a synchronise call
ends when what it waits for has ended. What the graph does not explain stays as a fixed lag on each operation, so that
the replay without edits gives the measured times exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.events import pair_waits
from traceview.analysis.replay_waits import add_waits
from traceview.analysis.roles import Role
from traceview.model import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.analysis.forwards import Forward
    from traceview.model import Ints, Trace


@dataclass
class Operation:
    """A node for work on the device; ``duration`` and ``after`` are what edits change."""

    row: int
    start: int
    duration: int
    launch: int
    """row of the call that launched it, or -1"""
    role: Role
    layer: int
    stream: int
    after: list[int]
    """rows of operations that must have ended before it starts"""
    lag: int = 0
    """ns from the end of what it follows to its start, when that is what holds it up"""
    launch_lag: int = 0
    """ns from the begin of its launch to its start, when that is what holds it up"""


@dataclass
class Call:
    """A node for an API call; ``duration`` and ``waits_for`` are what edits change."""

    row: int
    start: int
    end: int
    thread: int
    duration: int
    gap: int
    """host work between the thread's call before it and this one"""
    waits_for: list[int]
    """rows of operations that must have ended before it returns"""


@dataclass
class Graph:
    """A forward's operations and calls by their rows in the trace."""

    operations: dict[int, Operation]
    calls: dict[int, Call]


def build_graph(trace: Trace, forward: Forward, pairs: Ints | None = None) -> Graph:
    """Return the dependency graph of one forward on one device; ``pairs`` are those of the trace's waits, if known."""
    operations = _operations(trace, forward)
    calls = _calls(trace, forward, operations)
    _order_streams_and_engines(trace, operations)
    _order_events(trace, operations, pair_waits(trace) if pairs is None else pairs)
    add_waits(trace, calls, operations)
    for node in operations.values():
        # an edge that the measured times contradict is none: the device had another engine for it
        node.after = [row for row in node.after if _end(operations[row]) <= node.start]
    _measure_lags(operations, calls)
    return Graph(operations, calls)


def makespan(graph: Graph) -> int:
    """Return the makespan that the graph's durations give: first load or compute start to last compute end."""
    call_start: _Times = {}
    call_end: _Times = {}
    op_start: _Times = {}
    op_end: _Times = {}
    previous = _previous(graph)
    for kind, row in _in_order(graph, previous):
        if kind == _OPERATION:
            node = graph.operations[row]
            ready = [op_end[one] + node.lag for one in node.after if one in op_end]
            if node.launch in call_start:
                ready.append(call_start[node.launch] + node.launch_lag)
            op_start[row] = max(ready, default=node.start)
            op_end[row] = op_start[row] + node.duration
        elif kind == _CALL_START:
            call = graph.calls[row]
            call_start[row] = call_end.get(previous.get(row, -1), call.start - call.gap) + call.gap
        else:
            call = graph.calls[row]
            waited = max((op_end[one] for one in call.waits_for if one in op_end), default=call_start[row])
            call_end[row] = max(call_start[row], waited) + call.duration
    works = [node.row for node in graph.operations.values() if node.role in (Role.LOAD, Role.COMPUTE)]
    computes = [node.row for node in graph.operations.values() if node.role is Role.COMPUTE]
    return max(op_end[row] for row in computes) - min(op_start[row] for row in works)


_Times = dict[int, int]
_Node = tuple[str, int]
_CALL_START, _OPERATION, _CALL_END = "call starts", "operation", "call ends"


def _previous(graph: Graph) -> dict[int, int]:
    """Return, for each call, the one before it on its thread."""
    before: dict[int, int] = {}
    last: dict[int, int] = {}
    for row in sorted(graph.calls):
        thread = graph.calls[row].thread
        if thread in last:
            before[row] = last[thread]
        last[thread] = row
    return before


def _in_order(graph: Graph, previous: dict[int, int]) -> Iterator[_Node]:
    """Return all nodes so that each comes after what it depends on; where times leave a circle, by time."""
    needs: dict[_Node, list[_Node]] = {}
    for row, node in graph.operations.items():
        needs[_OPERATION, row] = [(_OPERATION, one) for one in node.after]
        if node.launch in graph.calls:
            needs[_OPERATION, row].append((_CALL_START, node.launch))
    for row, call in graph.calls.items():
        needs[_CALL_START, row] = [(_CALL_END, previous[row])] if row in previous else []
        needs[_CALL_END, row] = [(_CALL_START, row), *((_OPERATION, one) for one in call.waits_for)]
    try:
        yield from list(TopologicalSorter(needs).static_order())
    except CycleError:
        rank = {_CALL_START: 0, _OPERATION: 1, _CALL_END: 2}
        times = {node: (graph.operations if node[0] == _OPERATION else graph.calls)[node[1]].start for node in needs}
        yield from sorted(needs, key=lambda node: (times[node], node[1], rank[node[0]]))


def _end(node: Operation) -> int:
    return node.start + node.duration


def _measure_lags(operations: dict[int, Operation], calls: dict[int, Call]) -> None:
    """Set both lags of each operation: the one that held it up as measured, the other at most what is usual."""
    held_by_launch: list[Operation] = []
    held_by_others: list[Operation] = []
    for node in operations.values():
        launched = calls[node.launch].start if node.launch in calls else None
        free = max((_end(operations[row]) for row in node.after), default=None)
        node.launch_lag = 0 if launched is None else node.start - launched
        node.lag = 0 if free is None else node.start - free
        if free is None or (launched is not None and launched > free):
            held_by_launch.append(node)
        else:
            held_by_others.append(node)
    usual_lag = median([node.lag for node in held_by_others] or [0])
    usual_launch_lag = median([node.launch_lag for node in held_by_launch] or [0])
    for node in held_by_launch:
        node.lag = min(node.lag, round(usual_lag))
    for node in held_by_others:
        node.launch_lag = min(node.launch_lag, round(usual_launch_lag))


def _operations(trace: Trace, forward: Forward) -> dict[int, Operation]:
    table = trace.operations
    rows = forward.operations
    columns = (rows, table.start[rows], table.end[rows] - table.start[rows], table.launch[rows])
    named = (forward.role, forward.layer, table.stream[rows])
    return {
        row: Operation(row, start, duration, launch, Role(role), layer, stream, after=[])
        for row, start, duration, launch, role, layer, stream in zip(
            *(column.tolist() for column in (*columns, *named)), strict=True
        )
    }


def _calls(trace: Trace, forward: Forward, operations: dict[int, Operation]) -> dict[int, Call]:
    """Return the calls of the threads that launch the forward, from its first launch to its end."""
    table = trace.calls
    launches = np.array(sorted({node.launch for node in operations.values() if node.launch >= 0}), dtype=np.int64)
    if not len(launches):
        return {}
    threads = np.unique(table.thread[launches])
    until = max(int(np.searchsorted(table.start, forward.end)) - 1, int(launches[-1]))
    rows = np.arange(int(launches[0]), until + 1)
    calls: dict[int, Call] = {}
    last: dict[int, int] = {}
    rows = rows[np.isin(table.thread[rows], threads)]
    columns = (column[rows].tolist() for column in (table.start, table.end, table.thread))
    for row, start, end, thread in zip(rows.tolist(), *columns, strict=True):
        before = last.get(thread, start)
        calls[row] = Call(row, start, end, thread, end - start, start - before, [])
        last[thread] = max(end, before)
    return calls


def _order_streams_and_engines(trace: Trace, operations: dict[int, Operation]) -> None:
    """Let operations follow the one before on their stream, and copies the one before in their direction."""
    rows = sorted(operations, key=lambda one: (operations[one].start, one))
    kinds, directions = trace.operations.kind[rows].tolist(), trace.operations.direction[rows].tolist()
    last: dict[tuple[str, int], int] = {}
    for row, kind, direction in zip(rows, kinds, directions, strict=True):
        keys = [("stream", operations[row].stream)]
        if kind == int(Kind.COPY):
            keys.append(("engine", direction))
        for key in keys:
            if key in last:
                operations[row].after.append(last[key])
            last[key] = row


def _order_events(trace: Trace, operations: dict[int, Operation], pairs: Ints) -> None:
    """Let what a stream was given after a wait follow what the other stream was given before the record."""
    waits, records, table = trace.event_waits, trace.event_records, trace.operations
    launched = [node.launch for node in operations.values()]
    by_stream: dict[int, list[int]] = {}
    for row in sorted(operations, key=lambda one: operations[one].launch):
        by_stream.setdefault(operations[row].stream, []).append(row)
    launches = {stream: table.launch[rows] for stream, rows in by_stream.items()}
    # waits stand in the order of their calls; what is no later than the first launch, or after the last, orders nothing
    low, high = np.searchsorted(waits.call, (max(min(launched), 0), max(launched) + 1))
    for wait in (low + np.flatnonzero(pairs[low:high] >= 0)).tolist():
        source, target = int(records.stream[pairs[wait]]), int(waits.stream[wait])
        if source not in by_stream or target not in by_stream:
            continue
        before = int(np.searchsorted(launches[source], records.call[pairs[wait]])) - 1
        after = int(np.searchsorted(launches[target], waits.call[wait]))
        if before >= 0 and after < len(by_stream[target]):
            operations[by_stream[target][after]].after.append(by_stream[source][before])


def rows_of(graph: Graph, role: Role) -> Ints:
    """Return the rows of the graph's operations with a role, in start order."""
    nodes = sorted((node.start, node.row) for node in graph.operations.values() if node.role is role)
    return np.array([row for _, row in nodes], dtype=np.int64)
