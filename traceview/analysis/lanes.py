"""Which transfers used the same lane, and whether that slowed them: predicted by their paths, then measured.

Two transfers hinder each other where they use one link in one direction; in opposite directions a link is slowed a
little by its own bookkeeping. "No conflict" is only a prediction until the rates agree, so each class of transfers is
measured with and without every other one beside it. A transfer's time beside another is known to the ns, its bytes
only as a whole: so the rates are medians over the transfers, weighted by the time that each spent alone or together::

    h2d     ███1███ ███2███ ███3███        1 tells the rate alone, 3 together, 2 a part of both
    d2h             ····███████████
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.links import OBSERVED
from traceview.analysis.transfers import CPU, IN, NIC
from traceview.report_links import Lane

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview.analysis.traffic import Traffic
    from traceview.analysis.transfers import Transfers
    from traceview.intervals import Intervals
    from traceview.model import Flags

    Floats = NDArray[np.float64]

SLOWDOWN = 0.03
"""Share of the rate alone that must be lost to be called slower; large copies agree among each other to 1 %."""

LOW_RATE = 0.7
"""Share of the link's ceiling below which a class is slow; 80 to 90 % is normal."""

SMALL_BYTES = 1 << 20
"""Transfers below this are slow because each of them costs something, whatever the link."""

MEASURABLE_BYTES = 32 << 10
"""Transfers below this take as long as a transfer of nothing does, so that their rate tells nothing of the link."""

MIN_TRANSFERS = 2
"""Fewer transfers than this, alone or together, say nothing."""

MIN_SHARE = 0.01
"""Share of a class's time beside another below which chance decides what is measured."""

_MANY, _SAMPLE = 1 << 16, 1 << 12
"""From so many values on a sample of so many tells about where their median is."""

_PURE = 0.1
"""How much of a transfer's time may lie on the other side for it to count as alone, or as together."""

NO_CONFLICT, NOT_MEASURED, SHARED = "no_conflict", "not_measured", "shared_not_slowed"
INBOUND, OUTBOUND, DUPLEX = "inbound_contention", "outbound_contention", "duplex_slowdown"
ELSEWHERE = "slowed_elsewhere"
"""Slower beside each other without a link in common: something else, such as host memory, is shared."""

FULL_RATE, LOW, SMALL, PAGEABLE, UNKNOWN = "full_rate", "low_rate", "small_pieces", "pageable", "unknown"


def measure_lanes(traffic: Sequence[Traffic]) -> tuple[Lane, ...]:
    """Return each class of transfers of each device by itself, and beside every other class that ran with it."""
    lanes: list[Lane] = []
    for place in dict.fromkeys(one.place for one in traffic):
        own = [one for one in traffic if one.place == place]
        pairs = [(a, b) for a, b in permutations(own, 2) if intervals.intersect(a.busy, b.busy).length]
        lanes += [_alone(one, own) for one in own]
        lanes += [_beside(one, other, own) for one, other in pairs]
    return tuple(lanes)


def _alone(one: Traffic, classes: Sequence[Traffic]) -> Lane:
    """Return the lane of a class by itself."""
    others = _busy_of([other for other in classes if other is not one])
    covered = _covered(one.transfers, others)
    alone = _pure_rate(one.transfers, covered <= _PURE, 1 - covered)
    return _lane(one, rate_alone=alone, verdict=_rate_verdict(one, alone))


def _beside(one: Traffic, other: Traffic, classes: Sequence[Traffic]) -> Lane:
    """Return the lane of a class beside another one; what a third one may have slowed does not count."""
    shared, opposed = one.path.shares(other.path), one.path.opposes(other.path)
    third = [
        each
        for each in classes
        if each not in (one, other) and (one.path.shares(each.path) or one.path.opposes(each.path))
    ]
    both = intervals.intersect(one.busy, other.busy).length
    alone, together = _rates(one.transfers, other.busy, _busy_of(third))
    if both < MIN_SHARE * one.busy.length or one.transfers.typical_bytes < MEASURABLE_BYTES:
        together = None
    slowdown = None if alone is None or together is None else 1 - together / alone
    return _lane(
        one,
        rate_alone=alone,
        rate_together=together,
        beside=other.transfers.name,
        shared_lane=shared,
        slowdown=slowdown,
        together_ns=both,
        verdict=_pair_verdict(one, shared, opposed, slowdown),
    )


def _lane(one: Traffic, **measured: object) -> Lane:
    transfers, path = one.transfers, one.path
    values: dict[str, object] = {"rate_alone": None, "rate_together": None, "beside": None, "shared_lane": False}
    return Lane(
        **(values | measured),  # type: ignore[arg-type]  # the fields that differ between the two kinds of lane
        transfer_class=transfers.name,
        direction=transfers.direction,
        mover=transfers.mover,
        n_bytes=transfers.total_bytes,
        process=one.place[0],
        device=one.place[1],
        memory=transfers.memory,
        transfers=len(transfers.start),
        busy_ns=one.busy.length,
        rate=one.rate,
        links=tuple(str(link) for link in path.links),
        path_from=path.origin,
        ceiling=path.ceiling,
        ceiling_from=path.ceiling_from,
    )


def _pair_verdict(one: Traffic, shared: bool, opposed: bool, slowdown: float | None) -> str:
    """Return what two classes beside each other did to the first."""
    if slowdown is None:
        return NOT_MEASURED
    slower = slowdown > SLOWDOWN
    if shared:
        contention = INBOUND if one.transfers.direction == IN else OUTBOUND
        return contention if slower else SHARED
    if not slower:
        return NO_CONFLICT
    return DUPLEX if opposed else ELSEWHERE


def _rate_verdict(one: Traffic, alone: float | None) -> str:
    """Return whether a class runs at the rate of its link, and if not, what kind of slow it is."""
    ceiling = one.path.ceiling
    # transfers on several streams at once are slow one by one, but not together
    rate = max(alone or 0.0, one.rate or 0.0) or None
    if one.transfers.mover == CPU:
        return PAGEABLE
    if rate is None or ceiling is None:
        return UNKNOWN
    if rate >= LOW_RATE * ceiling:
        # that the best copy of the trace is as fast as itself says nothing of the link
        return UNKNOWN if one.path.ceiling_from == OBSERVED else FULL_RATE
    if one.transfers.mover == NIC:
        # how fast the network is nobody tells; it is slower than the link in most machines
        return UNKNOWN
    return SMALL if one.transfers.typical_bytes < SMALL_BYTES else LOW


def _rates(transfers: Transfers, beside: Intervals, third: Intervals) -> tuple[float | None, float | None]:
    """Return the rates without and with something beside, of transfers that no third one covers.

    Transfers that are almost wholly one or the other tell both. Where one side has too few of them, the two rates are
    those under which each transfer's time alone and together explains its bytes best.
    """
    covered = _covered(transfers, beside)
    free = _covered(transfers, third) <= _PURE
    alone = _pure_rate(transfers, free & (covered <= _PURE), 1 - covered)
    together = _pure_rate(transfers, free & (covered >= 1 - _PURE), covered)
    if alone is not None and together is not None:
        return alone, together
    fitted = _fitted_rates(transfers, free, covered)
    return (alone or fitted[0], together or fitted[1]) if fitted else (alone, together)


def _fitted_rates(transfers: Transfers, free: Flags, covered: Floats) -> tuple[float, float] | None:
    """Solve ``bytes = alone * time alone + together * time together`` by least squares; None where that is unsure."""
    kept = transfers.typical & free
    duration = (transfers.end - transfers.start)[kept].astype(np.float64)
    share = covered[kept]
    if len(share) < 2 * MIN_TRANSFERS or np.ptp(share) < 0.5:
        return None
    parts = np.stack((duration * (1 - share), duration * share), axis=1)
    solved, _, rank, _ = np.linalg.lstsq(parts, transfers.n_bytes[kept].astype(np.float64), rcond=None)
    return (float(solved[0]), float(solved[1])) if rank == 2 and (solved > 0).all() else None


def _pure_rate(transfers: Transfers, chosen: Flags, share: Floats) -> float | None:
    """Return the median rate in GB/s of those chosen transfers that are of typical size, None for too few.

    Each is weighted by its time times ``share``.
    """
    rows = np.flatnonzero(chosen & transfers.typical)
    if len(rows) < MIN_TRANSFERS:
        return None
    duration = transfers.end[rows] - transfers.start[rows]
    return _weighted_median(transfers.n_bytes[rows] / duration, duration * share[rows])


def _weighted_median(values: Floats, weights: Floats) -> float:
    """Return the smallest value up to which half of the weight lies.

    Of many values only those near the median of a sample are sorted: sorting millions takes longer than all else here.
    """
    half, near = weights.sum() / 2, np.ones(len(values), dtype=bool)
    if len(values) > _MANY:
        low, high = np.quantile(values[:: len(values) // _SAMPLE], (0.4, 0.6))
        below, among = weights[values < low].sum(), (values >= low) & (values <= high)
        if below < half <= below + weights[among].sum():
            half, near = half - below, among
    values, weights = values[near], weights[near]
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    return float(values[order[min(np.searchsorted(reached, half), len(order) - 1)]])


def _covered(transfers: Transfers, beside: Intervals) -> Floats:
    """Return how much of each transfer's time lies in ``beside``, from 0 to 1."""
    if not len(beside.start):
        return np.zeros(len(transfers.start))
    share: Floats = intervals.coverage(beside, transfers.start, transfers.end) / np.maximum(
        transfers.end - transfers.start, 1
    )
    return share


def _busy_of(classes: Sequence[Traffic]) -> Intervals:
    if not classes:
        return intervals.empty()
    starts, ends = zip(*(one.busy for one in classes), strict=True)
    return intervals.union(np.concatenate(starts), np.concatenate(ends))
