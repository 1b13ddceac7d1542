"""The numbers and places that a finding rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instrument.naming import STAGE, STORAGE_READ
from traceview import intervals, units
from traceview.analysis.causes import cause_of_call
from traceview.analysis.copies import fit_line, median_piece
from traceview.analysis.links import degraded_link
from traceview.analysis.passes import UNNAMED
from traceview.analysis.roles import Role
from traceview.analysis.spans import innermost_range
from traceview.analysis.stack_names import written_stack
from traceview.model import Memory
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.case import Case
    from traceview.model import Ints, Trace

PLACES = 3
"""How many places a finding names at the most."""

TELLING = 0.1
"""Share of the host's time below which a range is no answer to where it went."""


def find_evidence(name: str, case: Case) -> tuple[str, ...]:
    """Return what one forward shows of a cause: sizes, rates and counts, then where it happens."""
    return tuple(text for text in _EVIDENCE.get(name, _nothing)(case) if text)


def _nothing(_: Case) -> list[str]:
    return []


def _where(case: Case) -> str:
    named = case.forward.name != UNNAMED
    return (
        f"{case.forward.name} (index {case.forward.index})" if named else f"the forward with index {case.forward.index}"
    )


def _pageable(case: Case) -> list[str]:
    rows, operations = case.load_copies, case.trace.operations
    own = rows[operations.memory[rows] == Memory.PAGEABLE]
    total = int(operations.n_bytes[own].sum())
    copies = units.counted(len(own), "pageable copy", "pageable copies")
    return [f"{units.size(total)} in {copies} in {_where(case)}", _rate(case), _blocked(case)]


def _rate(case: Case) -> str:
    rate = case.load_rate
    if rate is None:
        return ""
    beside = f", large pinned copies get {units.rate(case.attainable)}" if case.attainable else ""
    return f"loads run at {units.rate(rate)}{beside}"


def _blocked(case: Case) -> str:
    rows = _rows_of(case, "pageable_source")
    spent = int(case.blocking.cost[rows].sum())
    return f"their calls block the host, and compute is idle for {units.duration(spent)} of that" if spent else ""


def _pieces(case: Case) -> list[str]:
    rows, operations = case.load_copies, case.trace.operations
    if not len(rows):
        return []
    pieces = units.counted(int(operations.pieces[rows].sum()), "piece")
    typical = units.size(median_piece(operations, rows))
    calls = np.unique(operations.launch[rows][operations.launch[rows] >= 0])
    durations = case.trace.calls.end[calls] - case.trace.calls.start[calls]
    host = f", each call takes the host {units.duration(float(np.median(durations)))}" if len(calls) else ""
    return [f"{pieces} of {typical} (median) in {_where(case)}{host}", _rate(case), _coalesced(case)]


def _coalesced(case: Case) -> str:
    """Return how long the loads would be busy as one piece a layer, and at which rate that is reckoned."""
    rows, operations, busy = case.load_copies, case.trace.operations, case.measures.load_busy_ns or 0
    fit = fit_line(operations.n_bytes[rows], operations.end[rows] - operations.start[rows])
    layers = sum(1 for layer in case.measured.layers if layer.load_pieces) or 1
    rate, cost, source = case.attainable, 0.0, "the rate of large pinned copies"
    if fit.rate is not None and fit.piece_cost_ns is not None:
        rate, cost, source = fit.rate, fit.piece_cost_ns, "the rate that their sizes tend to"
    once = int(operations.n_bytes[rows].sum()) / rate + layers * cost if rate else busy
    if once >= busy:
        return ""
    return f"as one piece a layer they are busy for {units.duration(once)}, not {units.duration(busy)}, at {source}"


def _category(*names: str) -> Callable[[Case], list[str]]:
    """Return evidence from categories of the accounting: their time, and the layers that lose most to them."""

    def evidence(case: Case) -> list[str]:
        spent = case.accounting.categories
        parts = [f"{name} {units.duration(spent[name])}" for name in names if spent[name]]
        return [f"{', '.join(parts)} in {_where(case)}" if parts else "", _layers(case, names)]

    return evidence


def _layers(case: Case, names: tuple[str, ...]) -> str:
    """Return the layers whose compute operations, the first or a later one, waited longest for the given categories."""
    holes = case.accounting.holes
    chosen = np.isin(holes.category, [CATEGORIES.index(name) for name in names])
    layer_of = dict(zip(case.forward.operations.tolist(), case.forward.layer.tolist(), strict=True))
    lost: dict[int, int] = {}
    for row, length in zip(holes.before[chosen].tolist(), holes.lengths[chosen].tolist(), strict=True):
        layer = layer_of.get(row, -1)
        if layer >= 0:
            lost[layer] = lost.get(layer, 0) + length
    worst = sorted(lost.items(), key=lambda item: -item[1])[:PLACES]
    return "most for " + ", ".join(f"layer {layer} ({units.duration(cost)})" for layer, cost in worst) if worst else ""


def _host(case: Case) -> list[str]:
    """Return evidence of host work that delays launches: how long, in which layers, inside which ranges."""
    places = sorted(host_places(case).items(), key=lambda item: -item[1])[:PLACES]
    inside = ", ".join(f"{name} ({units.duration(spent)})" for name, spent in places)
    return [*_category("host")(case), f"the host is inside {inside}" if inside else ""]


def waits_for_storage(case: Case) -> bool:
    """Return whether the host reads from storage, or stages what it read, for most of its time."""
    spent = case.accounting.categories["host"]
    places = host_places(case)
    return 2 * sum(places.get(name, 0) for name in (STORAGE_READ, STAGE)) > spent > 0


def host_places(case: Case) -> dict[str, int]:
    """Return the ns of the category ``host`` by the name of the innermost range of the forward's thread.

    Only ranges that tell more than the forward itself does, and none that tells of less than ``TELLING`` of all.
    """
    holes, ranges = case.accounting.holes, case.trace.ranges
    host = holes.category == CATEGORIES.index("host")
    start, end = holes.start[host], holes.end[host]
    inner = (ranges.start > case.forward.start) | (ranges.end < case.forward.end)
    own = np.flatnonzero((ranges.thread == case.forward.thread) & inner)
    if not len(start) or not len(own):
        return {}
    cuts = np.unique(np.concatenate((start, end, ranges.start[own], ranges.end[own])))
    inside = intervals.covering(intervals.Intervals(start, end), cuts[:-1]) >= 0
    low, length = cuts[:-1][inside], np.diff(cuts)[inside]
    spent: dict[str, int] = {}
    for at, ns in zip(
        intervals.innermost(ranges.start[own], ranges.end[own], low).tolist(), length.tolist(), strict=True
    ):
        if at >= 0:
            name = case.trace.names[ranges.name[own[at]]]
            spent[name] = spent.get(name, 0) + ns
    return {name: ns for name, ns in spent.items() if ns >= TELLING * length.sum()}


def _rows_of(case: Case, cause: str) -> Ints:
    """Return the rows of ``case.blocking`` with the accidental calls that are charged to one cause."""
    blocking = case.blocking
    rows = np.flatnonzero((blocking.forward == case.forward.index) & ~blocking.boundary & ~blocking.allowed)
    return rows[[cause_of_call(case, row) == cause for row in rows.tolist()]]


def _calls(cause: str) -> Callable[[Case], list[str]]:
    """Return evidence from accidental blocking calls of one cause: how many, how long, and the costliest places."""

    def evidence(case: Case) -> list[str]:
        blocking, trace = case.blocking, case.trace
        rows = _rows_of(case, cause)
        if not len(rows):
            return []
        blocked = units.duration(int(blocking.blocked[rows].sum()))
        worst = rows[np.argsort(-blocking.cost[rows], kind="stable")][:PLACES]
        ranges = innermost_range(trace, np.arange(len(trace.ranges)), blocking.call[worst])
        apis = [trace.names[name] for name in trace.calls.name[blocking.call[worst]].tolist()]
        inside = [trace.names[trace.ranges.name[one]] if one >= 0 else "no range" for one in ranges.tolist()]
        costs = [units.duration(cost) for cost in blocking.cost[worst].tolist()]
        called = [_called(trace, call) for call in blocking.call[worst].tolist()]
        places = [
            f"{api}{at} in {where} ({cost})" for api, at, where, cost in zip(apis, called, inside, costs, strict=True)
        ]
        return [
            f"{units.counted(len(rows), 'call')} in {_where(case)} {'blocks' if len(rows) == 1 else 'block'} "
            f"the host for {blocked}",
            "costliest: " + ", ".join(places),
        ]

    return evidence


def _called(trace: Trace, call: int) -> str:
    """Return what made a call by its stack, as `` at .item()``, empty where the capture has no stack of it."""
    stack = int(trace.calls.stack[call])
    written = written_stack(trace.stacks[stack]) if stack >= 0 else ()
    return f" at {written[0]}" if written else ""


def _mover(case: Case) -> list[str]:
    rows, operations = case.rows(Role.LOAD), case.trace.operations
    names = {case.trace.names[name] for name in operations.name[rows].tolist() if name >= 0}
    inflation = case.measures.compute_inflation_ns
    stretched = f"compute takes {units.duration(inflation)} longer while it runs" if inflation else ""
    busy = case.accounting.categories["sm_busy"]
    waits = f"compute waits {units.duration(busy)} for multiprocessors" if busy else ""
    return [
        f"mover: {', '.join(sorted(names)[:PLACES])}, busy {units.duration(case.measures.load_busy_ns or 0)}",
        stretched,
        waits,
    ]


def _slow_link(case: Case) -> list[str]:
    degraded = degraded_link(case.trace.capture.facts, case.forward.device)
    return [f"{_rate(case)} in {_where(case)}", f"the link is degraded: {degraded}" if degraded else ""]


def _remote(case: Case) -> list[str]:
    pages = case.pages
    if pages is None:
        return []
    where = f"{units.percent(pages.remote)} of the pages of the host buffers lie on other NUMA nodes than the GPU's"
    return [f"{where} ({pages.node}), most on node {pages.mostly}", f"{_rate(case)} in {_where(case)}"]


def _beside(verdict: str) -> Callable[[Case], list[str]]:
    """Return evidence from lanes: what ran beside the loads, and the rates alone and together."""

    def evidence(case: Case) -> list[str]:
        place = (case.forward.process, case.forward.device)
        own = [
            lane
            for lane in case.lanes
            if lane.verdict == verdict and (lane.process, lane.device) == place and lane.transfer_class == "h2d"
        ]
        return [
            f"loads run at {units.rate(one.rate_together)} beside {one.beside}, alone at {units.rate(one.rate_alone)}"
            for one in own[:PLACES]
            if one.rate_together is not None and one.rate_alone is not None
        ]

    return evidence


def _load_bound(case: Case) -> list[str]:
    measures = case.measures
    loads, computes = units.duration(measures.load_busy_ns or 0), units.duration(measures.compute_busy_ns)
    return [f"loads are busy {loads}, compute {computes} in {_where(case)}", _rate(case)]


_EVIDENCE: dict[str, Callable[[Case], list[str]]] = {
    "pageable_source": _pageable,
    "same_stream": _category("stream_queue", "load_copy"),
    "accidental_sync": _calls("accidental_sync"),
    "scalar_readback": _calls("scalar_readback"),
    "implicit_sync": _calls("implicit_sync"),
    "fragmented_copies": _pieces,
    "late_submission": _category("submit", "load_gap"),
    "host_bound": _host,
    "head_of_line": _category("engine_queue"),
    "sm_mover_contention": _mover,
    "low_link_rate": _slow_link,
    "remote_numa": _remote,
    "duplex_slowdown": _beside("duplex_slowdown"),
    "inbound_contention": _beside("inbound_contention"),
    "load_bound": _load_bound,
}
