"""Gives a forward's lost time to causes: which cause took which part of the accounting.

Every nanosecond of idle compute goes to at most one cause, so costs never add up to more than the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.lanes import SLOWDOWN
from traceview.analysis.measures import ideal_makespan
from traceview.analysis.roles import Role
from traceview.analysis.sync_costs import find_idle_after
from traceview.intervals import Intervals
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from traceview.analysis.case import Case

PIPELINE_CAUSES = (
    "late_submission",
    "host_bound",
    "accidental_sync",
    "scalar_readback",
    "implicit_sync",
    "head_of_line",
    "same_stream",
)
"""Causes that keep a forward from its ideal: together they cannot cost more than makespan - ideal."""


SLOW_LOADS = frozenset({"pageable_source", "fragmented_copies", "low_link_rate", "remote_numa"})
"""Causes that make the loads themselves slow."""


def attribute(case: Case) -> dict[str, int]:
    """Return the ns that each cause cost one forward; causes that cost nothing are left out."""
    costs = dict.fromkeys(("pageable_source", "fragmented_copies", "sm_mover_contention", *PIPELINE_CAUSES), 0)
    left = _charge_calls(case, costs)
    spent = case.accounting.categories
    costs[_feeding_cause(case)] += spent["submit"] + spent["load_gap"]
    slow = round(spent["stream_queue"] * _lost_rate(case)) if case.pageable else 0
    costs["pageable_source"] += slow
    costs["same_stream"] += spent["stream_queue"] - slow
    costs["head_of_line"] += spent["engine_queue"]
    costs["host_bound"] += left["host"]
    if case.moved_by_kernels:
        costs["sm_mover_contention"] += spent["sm_busy"] + max(case.measures.compute_inflation_ns or 0, 0)
    costs |= _charge_loads(case, costs)
    costs |= _charge_traffic(case, costs)
    _cap(case, costs)
    costs["load_bound"] = _load_bound(case, costs)
    return {name: cost for name, cost in costs.items() if cost > 0}


def _charge_calls(case: Case, costs: dict[str, int]) -> dict[str, int]:
    """Charge blocking calls for their waits and restarts; return what of the host's time no such call explains."""
    blocking, holes = case.blocking, case.accounting.holes
    mine = np.flatnonzero(blocking.forward == case.forward.index)
    host = holes.category == CATEGORIES.index("host")
    left = int(holes.lengths[host].sum())
    host_holes = Intervals(holes.start[host], holes.end[host])
    parts = find_idle_after(case.trace, case.forward, case.accounting, blocking.call[mine], blocking.start[mine])
    for part in parts:
        rows = mine[part.rows]
        meant = blocking.boundary[rows] | blocking.allowed[rows]
        for position in np.flatnonzero((part.cost > 0) & ~meant).tolist():
            costs[cause_of_call(case, int(rows[position]))] += int(part.cost[position])
        left -= intervals.intersect(host_holes, part.caused).length
    return {"host": max(left, 0)}


def cause_of_call(case: Case, row: int) -> str:
    """Return the cause that an accidental blocking call, given by its row of ``case.blocking``, is charged to."""
    blocking = case.blocking
    if blocking.readback[row]:
        return "scalar_readback"
    if blocking.explicit[row]:
        # a wait right after a pageable load is the second half of one synchronous copy (tensor.to(device))
        return "pageable_source" if blocking.previous[row] in case.pageable_launches else "accidental_sync"
    return "pageable_source" if blocking.call[row] in case.pageable_launches else "implicit_sync"


def _feeding_cause(case: Case) -> str:
    """Return why loads were fed to the device too slowly."""
    if case.pageable:
        return "pageable_source"
    return "fragmented_copies" if case.fragmented else "late_submission"


def _charge_loads(case: Case, costs: dict[str, int]) -> dict[str, int]:
    """Return the changed costs with the exposed copy time charged: what the copies lost against the link's rate.

    The first layer's load is never charged in full, for something has to load first.
    """
    charged = {"low_link_rate": 0, "same_stream": costs["same_stream"]}
    slow = _slow_cause(case)
    lost = _lost_rate(case) if slow else 0.0
    streams = _layer_streams(case)
    for position, (layer, exposed) in enumerate(_load_copy(case).items()):
        if position and streams.get(layer):
            charged["same_stream"] += exposed
        elif slow:
            charged[slow] = charged.get(slow, costs.get(slow, 0)) + round(exposed * lost)
    return charged


def _slow_cause(case: Case) -> str | None:
    """Return why the forward's copies ran below the rate of the link, or None where they did not or nobody knows."""
    rate = case.load_rate
    if rate is None or case.attainable is None:
        return None
    share = rate / case.attainable
    if case.remote and not case.pageable and not case.fragmented:
        # where the reason is known, all that is lost counts but for what large copies vary by
        return "remote_numa" if share < 1 - SLOWDOWN else None
    if share >= case.thresholds.low_rate:
        return None
    if case.pageable:
        return "pageable_source"
    return "fragmented_copies" if case.fragmented else "low_link_rate"


def _charge_traffic(case: Case, costs: dict[str, int]) -> dict[str, int]:
    """Return what other traffic on the link cost: what loads lost to it, as far as compute waited for copies."""
    # the first layer's load stands alone at the forward's begin: what comes later is what other traffic can stretch
    later = sum(list(_load_copy(case).values())[1:])
    left = max(later - costs.get("low_link_rate", 0) - costs.get("remote_numa", 0), 0)
    charged = {}
    for name, lost in case.slowdowns.items():
        charged[name] = min(lost, left)
        left -= charged[name]
    return charged


def _lost_rate(case: Case) -> float:
    rate = case.load_rate
    return 1.0 - rate / case.attainable if rate is not None and case.attainable else 0.0


def _load_copy(case: Case) -> dict[int, int]:
    """Return how long each layer waited for its load while copies ran, in the order in which layers compute."""
    holes = case.accounting.holes
    chosen = np.flatnonzero(holes.category == CATEGORIES.index("load_copy"))
    # holes stand in time order, so those before one operation follow each other
    first = np.flatnonzero(np.diff(holes.before[chosen], prepend=-1))
    total = np.add.reduceat(holes.lengths[chosen], first) if len(chosen) else first
    waited = dict(zip(holes.before[chosen[first]].tolist(), total.tolist(), strict=True))
    return {layer: waited.get(row, 0) for layer, row in case.accounting.first_of_layer.items()}


def _layer_streams(case: Case) -> dict[int, bool]:
    """Return, for each layer that loads, whether its load ran on the stream of its first compute operation."""
    operations, forward = case.trace.operations, case.forward
    loads = forward.role == Role.LOAD
    same: dict[int, bool] = {}
    for layer, row in case.accounting.first_of_layer.items():
        streams = operations.stream[forward.operations[loads & (forward.layer == layer)]]
        same[layer] = len(streams) > 0 and bool((streams == operations.stream[row]).all())
    return same


def _cap(case: Case, costs: dict[str, int]) -> None:
    """Shrink what keeps the forward from its ideal to makespan - ideal, where the ideal is known."""
    if case.measures.ideal_ns is None:
        return
    most = max(case.measures.makespan_ns - case.measures.ideal_ns, 0)
    total = sum(costs[name] for name in PIPELINE_CAUSES)
    if total > most:
        for name in PIPELINE_CAUSES:
            costs[name] = costs[name] * most // total


def _load_bound(case: Case, costs: dict[str, int]) -> int:
    """Return what the forward loses because its loads take longer than its compute, though nothing slows them down.

    The ideal exceeds the first load plus all compute by that; never more than other causes left of the loss.
    """
    measures, layers = case.measures, case.measured.layers
    # where nobody knows the memory, a slow load may just as well come from pageable memory
    slowed = case.pageable or case.fragmented or not case.memory_known
    if measures.ideal_ns is None or slowed or not layers:
        return 0
    inflation = max(measures.compute_inflation_ns or 0, 0) if case.moved_by_kernels else 0
    compute = sum(layer.compute_busy_ns for layer in layers) - inflation
    first = layers[0].load_busy_ns or 0
    loss = (
        measures.makespan_ns
        - (measures.compute_busy_ns - inflation)
        - min(first, next(iter(_load_copy(case).values()), 0))
    )
    return max(min(measures.ideal_ns - first - compute, loss - sum(costs.values())), 0)


def floor_without(name: str, case: Case) -> int | None:
    """Return the least ns that the forward can take with one cause gone: its ideal; None where nothing tells.

    Where the cause makes loads slow, its ideal is that of loads at the rate that large pinned copies get; where the
    link itself is the cause, that of a link which delays nothing but the first layer.
    """
    measures, layers = case.measures, case.measured.layers
    loads = [layer.load_busy_ns or 0 for layer in layers]
    computes = [layer.compute_busy_ns for layer in layers]
    if name in SLOW_LOADS:
        moved = [layer.load_bytes for layer in layers] or [measures.load_bytes]
        if case.attainable is None or None in moved:
            return None
        loads = [round((one or 0) / case.attainable) for one in moved]
    if name == "sm_mover_contention":
        stretched = max(measures.compute_inflation_ns or 0, 0) / max(sum(computes), 1)
        computes = [round(one * (1 - stretched)) for one in computes]
    if name in case.slowdowns:
        stretched = min(case.slowdowns[name] / max(sum(loads), 1), 1.0)
        loads = [round(one * (1 - stretched)) for one in loads]
    if name == "load_bound":
        # whatever the link, a layer has to be there before anything computes
        loads = [*loads[:1], *(0 for _ in loads[1:])]
    if layers:
        return ideal_makespan(loads, computes)
    return max(sum(loads) or measures.load_busy_ns or 0, measures.compute_busy_ns)
