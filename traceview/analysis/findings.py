"""Turns lost time into findings: what costs how much, why, and what to do; a healthy trace has none."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from traceview import units
from traceview.analysis.advice import ADVICE, MOVER_BOUND, PREFETCH, Advice
from traceview.analysis.case import Case, Thresholds
from traceview.analysis.causes import attribute, floor_without
from traceview.analysis.evidence import find_evidence, waits_for_storage
from traceview.analysis.geometric import find_geometric
from traceview.analysis.link_causes import attainable_rates, find_pages, slowdowns
from traceview.report import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview import report
    from traceview.analysis.accounting import Accounting
    from traceview.analysis.forwards import Forward
    from traceview.analysis.links import LinkOptions
    from traceview.analysis.syncs import BlockingCalls
    from traceview.analysis.topology import Topology
    from traceview.analysis.traffic import Traffic
    from traceview.model import Trace
    from traceview.report_links import Lane


@dataclass(frozen=True)
class Measured:
    """What findings are made from beside the trace: forwards, accounting, calls, lanes, what the user set."""

    forwards: Sequence[Forward]
    accountings: Sequence[Accounting]
    results: Sequence[report.Forward]
    blocking: BlockingCalls
    lanes: Sequence[Lane]
    traffic: Sequence[Traffic]
    link: LinkOptions
    topology: Topology | None
    thresholds: Thresholds


def find_causes(trace: Trace, known: Measured) -> tuple[Finding, ...]:
    """Return the findings of a trace, the costliest first; those of forwards that are not warm-up, by their medians.

    Without a measured forward costs are geometric: a class's busy time that no compute covers.
    """
    rates = attainable_rates(trace, known.link)
    cases = [
        Case(
            trace=trace,
            forward=forward,
            accounting=accounting,
            measured=result,
            blocking=known.blocking,
            attainable=rates.get(forward.device),
            slowdowns=slowdowns(known.lanes, known.traffic, trace, forward),
            pages=find_pages(trace.capture.facts, forward.device, known.topology),
            lanes=known.lanes,
            thresholds=known.thresholds,
        )
        for forward, accounting, result in zip(known.forwards, known.accountings, known.results, strict=True)
        if not forward.warmup
    ]
    found = _causal(cases, known.thresholds) if cases else find_geometric(trace, known.lanes, known.thresholds)
    return tuple(sorted(found, key=lambda finding: (-finding.cost_ns, finding.id)))


def severity(share: float, thresholds: Thresholds) -> str:
    """Return ``high``, ``medium`` or ``low`` for a share of the makespan."""
    if share >= thresholds.high_share:
        return "high"
    return "medium" if share >= thresholds.medium_share else "low"


def worth_telling(cost_ns: float, share: float, thresholds: Thresholds) -> bool:
    """Return whether a cost is large enough to be a finding; what costs nothing is none, whatever the thresholds."""
    return cost_ns > 0 and share >= thresholds.min_share and cost_ns >= 1000 * thresholds.min_cost_us


def _causal(cases: Sequence[Case], thresholds: Thresholds) -> list[Finding]:
    costs = [attribute(case) for case in cases]
    makespan = median(case.measures.makespan_ns for case in cases)
    found = []
    for name in ADVICE:
        cost = round(median(one.get(name, 0) for one in costs))
        share = cost / makespan if makespan else 0.0
        if worth_telling(cost, share, thresholds):
            found.append(_finding(name, cost, share, makespan, (cases, costs, thresholds)))
    return found


def _finding(
    name: str,
    cost: int,
    share: float,
    makespan: float,
    context: tuple[Sequence[Case], Sequence[Mapping[str, int]], Thresholds],
) -> Finding:
    cases, costs, thresholds = context
    # the forward that it costs about what is told is the one to look at
    typical = min(zip(cases, costs, strict=True), key=lambda pair: abs(pair[1].get(name, 0) - cost))[0]
    words = _advice(name, typical)
    level = severity(share, thresholds)
    if name == "load_bound" and level == "high":
        # nothing is wrong with such a pipeline
        level = "medium"
    floors = [floor_without(name, case) for case in cases]
    known = [floor for floor in floors if floor is not None]
    rest = makespan - cost
    # where nothing tells the rate that loads could have, their share of the rest may shrink too
    left = (
        f"{units.duration(max(rest, median(known)))}"
        if len(known) == len(floors)
        else f"at most {units.duration(rest)}"
    )
    bounded = bool(known) and len(known) == len(floors) and median(known) > rest
    bound = ", its loads and compute allow no less" if bounded else ""
    without = f"without it a forward would take {left} instead of {units.duration(makespan)}{bound}"
    return Finding(
        id=name,
        severity=level,
        cost_ns=cost,
        share=share,
        basis="accounting",
        message=words.message,
        evidence=tuple(text for text in (*find_evidence(name, typical), without) if text),
        advice=words.remedy,
    )


def _advice(name: str, case: Case) -> Advice:
    """Return what a finding means and what to do about it in the forward that shows it."""
    if name == "host_bound" and waits_for_storage(case):
        return PREFETCH
    return MOVER_BOUND if name == "load_bound" and case.moved_by_kernels else ADVICE[name]
