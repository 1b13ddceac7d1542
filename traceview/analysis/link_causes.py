"""What the link itself costs a forward: the rate that copies could get, other traffic, the wrong NUMA node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceview import intervals
from traceview.analysis.links import best_copy, possible_rate, stated_ceiling
from traceview.analysis.paths import gpu_node, pages_by_node
from traceview.analysis.roles import Role

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.analysis.forwards import Forward
    from traceview.analysis.links import LinkOptions
    from traceview.analysis.topology import Topology
    from traceview.analysis.traffic import Traffic
    from traceview.model import Trace
    from traceview.report_links import Lane

TYPICAL_SHARE = 0.87
"""Share of a PCIe link's ceiling that large pinned copies get; 80 to 90 % is normal."""

BESIDE_CAUSES = ("duplex_slowdown", "inbound_contention")
"""Verdicts on lanes that are findings where they cost something."""

MOSTLY = 0.5
"""Share of the host buffers' pages on another node than the GPU's from which they count as remote."""


def attainable_rates(trace: Trace, link: LinkOptions) -> dict[int, float]:
    """Return, for each device, the GB/s that large pinned copies get: the best of the trace or 87 % of the link.

    Of a degraded link it is 87 % of what the link could carry. No entry for a device of which neither is known.
    """
    rates: dict[int, float] = {}
    for device in trace.capture.devices:
        seen, stated = best_copy(trace, device), stated_ceiling(trace, device, link)
        most = possible_rate(trace.capture.facts, device) or (stated and stated.rate)
        known = [one for one in (seen and seen.rate, most and TYPICAL_SHARE * most) if one]
        if known:
            rates[device] = max(known)
    return rates


def slowdowns(lanes: Sequence[Lane], traffic: Sequence[Traffic], trace: Trace, forward: Forward) -> dict[str, int]:
    """Return, by finding, the copy time that loads of one forward lost because other traffic ran beside them."""
    place, operations = (forward.process, forward.device), trace.operations
    rows = forward.rows(Role.LOAD)
    loads = intervals.union(operations.start[rows], operations.end[rows])
    busy = {one.transfers.name: one.busy for one in traffic if one.place == place}
    lost: dict[str, int] = {}
    for lane in lanes:
        own = (lane.process, lane.device) == place and lane.transfer_class == "h2d"
        if own and lane.verdict in BESIDE_CAUSES and lane.slowdown and lane.beside in busy:
            together = intervals.intersect(loads, busy[lane.beside]).length
            lost[lane.verdict] = lost.get(lane.verdict, 0) + round(together * lane.slowdown)
    return lost


def geometric_slowdowns(lanes: Sequence[Lane]) -> dict[str, int]:
    """Return, by finding, the time that loads lost in the whole trace because other traffic ran beside them."""
    lost: dict[str, int] = {}
    for lane in lanes:
        if lane.verdict in BESIDE_CAUSES and lane.transfer_class == "h2d" and lane.slowdown and lane.together_ns:
            lost[lane.verdict] = lost.get(lane.verdict, 0) + round(lane.together_ns * lane.slowdown)
    return lost


@dataclass(frozen=True)
class Pages:
    """Where the pinned host buffers lie, seen from a GPU."""

    node: int
    """NUMA node of the GPU"""
    remote: float
    """share of the pages that lie on other nodes"""
    mostly: int
    """the node with most pages"""


def find_pages(facts: Mapping[str, Any] | None, device: int, topology: Topology | None = None) -> Pages | None:
    """Return where the pinned host buffers lie; None where facts and topology do not tell both pages and GPU."""
    node, pages = gpu_node(facts, device, topology), pages_by_node(facts)
    total = sum(pages.values())
    if node is None or not total:
        return None
    return Pages(node, 1.0 - pages.get(node, 0) / total, max(pages, key=lambda one: pages[one]))
