"""The numbers and places that a finding rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview import units
from traceview.analysis.roles import Role
from traceview.analysis.spans import innermost_range
from traceview.model import Memory
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.case import Case

PLACES = 3
"""How many places a finding names at the most."""


def find_evidence(name: str, case: Case) -> tuple[str, ...]:
    """Return what one forward shows of a cause: sizes, rates and counts, then where it happens."""
    return tuple(text for text in _EVIDENCE.get(name, _nothing)(case) if text)


def _nothing(_: Case) -> list[str]:
    return []


def _where(case: Case) -> str:
    return f"{case.forward.name} (index {case.forward.index})"


def _pageable(case: Case) -> list[str]:
    rows, operations = case.load_copies, case.trace.operations
    own = rows[operations.memory[rows] == Memory.PAGEABLE]
    total = int(operations.n_bytes[own].sum())
    return [f"{units.size(total)} in {len(own):,} pageable copies in {_where(case)}", _rate(case), _blocked(case)]


def _rate(case: Case) -> str:
    rate = case.load_rate
    if rate is None:
        return ""
    beside = f", large pinned copies get {units.rate(case.attainable)}" if case.attainable else ""
    return f"loads run at {units.rate(rate)}{beside}"


def _blocked(case: Case) -> str:
    spent = case.accounting.categories["implicit_sync"]
    return f"{units.duration(spent)} of idle compute inside blocking calls" if spent else ""


def _pieces(case: Case) -> list[str]:
    rows, operations = case.load_copies, case.trace.operations
    if not len(rows):
        return []
    sizes = operations.n_bytes[rows] / np.maximum(operations.pieces[rows], 1)
    count = int(operations.pieces[rows].sum())
    return [f"{count:,} pieces of {units.size(float(np.median(sizes)))} (median) in {_where(case)}", _rate(case)]


def _category(*names: str) -> Callable[[Case], list[str]]:
    """Return evidence from categories of the accounting: their time, and the layers that lose most to them."""

    def evidence(case: Case) -> list[str]:
        spent = [f"{name} {units.duration(case.accounting.categories[name])}" for name in names]
        return [f"{', '.join(spent)} in {_where(case)}", _layers(case, names)]

    return evidence


def _layers(case: Case, names: tuple[str, ...]) -> str:
    """Return the layers whose compute waited longest for the given categories."""
    holes = case.accounting.holes
    chosen = np.isin(holes.category, [CATEGORIES.index(name) for name in names])
    layer_of = dict(zip(case.forward.operations.tolist(), case.forward.layer.tolist(), strict=True))
    lost: dict[int, int] = {}
    for row, length in zip(holes.before[chosen].tolist(), holes.lengths[chosen].tolist(), strict=True):
        layer = layer_of.get(row, -1)
        if layer >= 0:
            lost[layer] = lost.get(layer, 0) + length
    worst = sorted(lost.items(), key=lambda item: -item[1])[:PLACES]
    return (
        "most before " + ", ".join(f"layer {layer} ({units.duration(cost)})" for layer, cost in worst) if worst else ""
    )


def _calls(*, readback: bool = False, explicit: bool = False) -> Callable[[Case], list[str]]:
    """Return evidence from accidental blocking calls of one kind: how many, how long, and the costliest places."""

    def evidence(case: Case) -> list[str]:
        blocking, trace = case.blocking, case.trace
        kind = (blocking.readback == readback) & (readback | (blocking.explicit == explicit))
        meant = blocking.boundary | blocking.allowed
        rows = np.flatnonzero((blocking.forward == case.forward.index) & kind & ~meant)
        if not len(rows):
            return []
        blocked = units.duration(int(blocking.blocked[rows].sum()))
        worst = rows[np.argsort(-blocking.cost[rows], kind="stable")][:PLACES]
        ranges = innermost_range(trace, np.arange(len(trace.ranges)), blocking.call[worst])
        apis = [trace.names[name] for name in trace.calls.name[blocking.call[worst]].tolist()]
        inside = [trace.names[trace.ranges.name[one]] if one >= 0 else "no range" for one in ranges.tolist()]
        costs = [units.duration(cost) for cost in blocking.cost[worst].tolist()]
        places = [f"{api} in {where} ({cost})" for api, where, cost in zip(apis, inside, costs, strict=True)]
        return [
            f"{len(rows):,} calls in {_where(case)} block the host for {blocked}",
            "costliest: " + ", ".join(places),
        ]

    return evidence


def _mover(case: Case) -> list[str]:
    rows, operations = case.rows(Role.LOAD), case.trace.operations
    names = {case.trace.names[name] for name in operations.name[rows].tolist() if name >= 0}
    inflation = case.measures.compute_inflation_ns
    stretched = f"compute takes {units.duration(inflation)} longer while it runs" if inflation else ""
    waits = f"compute waits {units.duration(case.accounting.categories['sm_busy'])} for multiprocessors"
    return [
        f"mover: {', '.join(sorted(names)[:PLACES])}, busy {units.duration(case.measures.load_busy_ns)}",
        stretched,
        waits,
    ]


def _load_bound(case: Case) -> list[str]:
    measures = case.measures
    busy = f"loads are busy {units.duration(measures.load_busy_ns)}, compute {units.duration(measures.compute_busy_ns)}"
    return [f"{busy} in {_where(case)}", _rate(case)]


_EVIDENCE: dict[str, Callable[[Case], list[str]]] = {
    "pageable_source": _pageable,
    "same_stream": _category("stream_queue", "load_copy"),
    "accidental_sync": _calls(explicit=True),
    "scalar_readback": _calls(readback=True),
    "implicit_sync": _calls(),
    "fragmented_copies": _pieces,
    "late_submission": _category("submit", "load_gap"),
    "host_bound": _category("host"),
    "head_of_line": _category("engine_queue"),
    "sm_mover_contention": _mover,
    "low_link_rate": lambda case: [_rate(case)],
    "load_bound": _load_bound,
}
