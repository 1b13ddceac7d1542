"""What a forward would take with one cause mended: edits of its dependency graph, replayed."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.events import pair_waits
from traceview.analysis.link_causes import attainable_rates
from traceview.analysis.replay import Call, Graph, Operation, build_graph, makespan
from traceview.analysis.roles import Role
from traceview.errors import UsageError
from traceview.model import CallKind, Kind, Memory
from traceview.report import WhatIf

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.analysis.findings import Measured
    from traceview.analysis.forwards import Forward
    from traceview.analysis.syncs import BlockingCalls
    from traceview.model import Trace

UNKNOWN_RATE = "neither a large pinned copy nor the facts tell the link's rate; give it: --pcie 5x16 or --link-gbps X"
"""Why an edit that changes how fast loads run has no prediction."""

USUAL_SUBMISSION_NS = 5_000
"""Host time of an asynchronous copy call where the trace has none of pinned memory to take it from."""


def predict(trace: Trace, known: Measured, edits: Sequence[str]) -> tuple[WhatIf, ...]:
    """Return the predicted makespan with each edit alone, then with all of them, as medians over measured forwards.

    ``edits`` are of ``EDITS``. An edit that needs a link rate which nothing in the trace tells is not answered: its
    ``predicted_ns`` is None with the reason. Nothing is predicted where no forward is measured. Raises ``UsageError``
    for an unknown edit.
    """
    edits = tuple(dict.fromkeys(edits))
    unknown = [edit for edit in edits if edit not in EDITS]
    if unknown:
        raise UsageError(f"unknown what-if {unknown[0]!r}", f"there is: {', '.join(EDITS)}")
    measured = [forward for forward in known.forwards if not forward.warmup]
    combinations = [(edit,) for edit in edits] + ([tuple(edits)] if len(edits) > 1 else [])
    if not measured or not combinations:
        return ()
    pairs, submission = pair_waits(trace), _submission(trace)
    before = round(median(makespan(build_graph(trace, forward, pairs)) for forward in measured))
    rates = attainable_rates(trace, known.link)
    found = []
    for chosen in combinations:
        edited = [_Edit(trace, forward, known.blocking, rates.get(forward.device), submission) for forward in measured]
        makespans = [one.makespan(build_graph(trace, one.forward, pairs), chosen) for one in edited]
        if any(one.rate_missed for one in edited):
            found.append(WhatIf(chosen, before, None, UNKNOWN_RATE))
        else:
            found.append(WhatIf(chosen, before, round(median(makespans)), None))
    return tuple(found)


def _submission(trace: Trace) -> int:
    """Return the host time in ns of a typical asynchronous copy call that copies no pageable memory."""
    submits = trace.calls.kind == int(CallKind.ASYNC_COPY)
    operations = trace.operations
    submits[operations.launch[(operations.memory == int(Memory.PAGEABLE)) & (operations.launch >= 0)]] = False
    durations = trace.calls.end[submits] - trace.calls.start[submits]
    return round(float(np.median(durations))) if len(durations) else USUAL_SUBMISSION_NS


@dataclass
class _Edit:
    """What edits know beside the graph."""

    trace: Trace
    forward: Forward
    blocking: BlockingCalls
    rate: float | None
    """GB/s that large pinned copies get, None where nothing tells"""
    submission: int
    """host time of an asynchronous copy call in ns"""
    rate_missed: bool = False
    """whether an edit asked for that rate in vain"""

    def makespan(self, graph: Graph, edits: Sequence[str]) -> int:
        """Return what the forward takes with some edits of its graph."""
        for name in edits:
            EDITS[name](self, graph)
        return makespan(graph)

    def copies(self, graph: Graph) -> list[Operation]:
        """Return the graph's load copies in start order."""
        kinds = self.trace.operations.kind
        nodes = [one for one in graph.operations.values() if one.role is Role.LOAD and kinds[one.row] == Kind.COPY]
        return sorted(nodes, key=lambda node: (node.start, node.row))

    def time_at_rate(self, n_bytes: int) -> int:
        """Return the ns that bytes take as large pinned copies; sets ``rate_missed`` where nobody knows."""
        if self.rate is None:
            self.rate_missed = True
            return 0
        return round(n_bytes / self.rate)


def _coalesce(edit: _Edit, graph: Graph) -> None:
    """Make each layer's load one copy: its other pieces take no time, and neither does the host between them."""
    others_launch = {node.launch for node in graph.operations.values() if node.role is not Role.LOAD}
    layers: dict[int, list[Operation]] = {}
    for node in edit.copies(graph):
        if node.layer >= 0:
            layers.setdefault(node.layer, []).append(node)
    for nodes in layers.values():
        if len(nodes) < 2 and edit.trace.operations.pieces[nodes[0].row] < 2:
            continue
        first, others = nodes[0], nodes[1:]
        first.duration = edit.time_at_rate(int(sum(edit.trace.operations.n_bytes[node.row] for node in nodes)))
        kept = graph.calls.get(first.launch)
        if kept is not None:
            kept.duration = min(kept.duration, edit.submission)
        for node in others:
            node.duration = node.lag = node.launch_lag = 0
        for row in range(first.launch + 1, max(node.launch for node in nodes) + 1):
            call = graph.calls.get(row)
            if kept is not None and call is not None and call.thread == kept.thread and row not in others_launch:
                _skip(call)


def _pin(edit: _Edit, graph: Graph) -> None:
    """Let pageable loads run at the rate of pinned ones, and their calls return at once."""
    operations = edit.trace.operations
    for node in edit.copies(graph):
        if operations.memory[node.row] != Memory.PAGEABLE:
            continue
        node.duration = min(node.duration, edit.time_at_rate(int(operations.n_bytes[node.row])))
        if node.launch in graph.calls:
            call = graph.calls[node.launch]
            call.duration = min(call.duration, edit.submission)


def _no_sync(edit: _Edit, graph: Graph) -> None:
    """Leave out what blocks the host by accident; loads from pageable memory stay."""
    blocking = edit.blocking
    mine = (blocking.forward == edit.forward.index) & ~blocking.boundary & ~blocking.allowed
    loads = {node.launch for node in edit.copies(graph)}
    for row in blocking.call[mine].tolist():
        if row in graph.calls and row not in loads:
            call = graph.calls[row]
            call.duration, call.waits_for = 0, []


def _own_stream(edit: _Edit, graph: Graph) -> None:
    """Put load copies of the compute stream on a stream of their own.

    What computes a layer then waits for that layer's load; what belongs to no layer, for the loads launched before it.
    """
    computes = {node.stream for node in graph.operations.values() if node.role is Role.COMPUTE}
    moved = {node.row for node in edit.copies(graph) if node.stream in computes}
    load_of_layer = {node.layer: node.row for node in edit.copies(graph) if node.layer >= 0}
    last: dict[tuple[bool, int], int] = {}
    for node in sorted(graph.operations.values(), key=lambda one: (one.start, one.row)):
        if node.stream not in computes:
            continue
        loads = node.row in moved
        follows = [last.get((loads, node.stream))]
        if not loads:
            follows.append(load_of_layer.get(node.layer, last.get((True, node.stream))))
        node.after = [row for row in node.after if graph.operations[row].stream != node.stream]
        node.after += [row for row in follows if row is not None and graph.operations[row].start <= node.start]
        last[loads, node.stream] = node.row


def _skip(call: Call) -> None:
    """Take a call and the host work before it out of its thread's time."""
    call.duration = call.gap = 0
    call.waits_for = []


EDITS: dict[str, Callable[[_Edit, Graph], None]] = {
    "coalesce": _coalesce,
    "pin": _pin,
    "no-sync": _no_sync,
    "own-stream": _own_stream,
}
"""Edits by the name that ``--what-if`` takes."""
