"""Many ranks side by side: what each does, which come late, and what makes them late."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from traceview.analysis.measures import summarise
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from traceview.model import Capture
    from traceview.report import Finding, Forward, Measures, Report

LATE_SHARE = 0.05
"""A rank comes late when its makespan exceeds the median of the others by this share of it."""

LATE_DEVIATIONS = 3.0
"""And by this many standard deviations of the others, as their median absolute deviation gives it."""

_MAD_TO_DEVIATION = 1.4826
_EPOCH_NS = 1_000_000_000_000_000_000
"""Times beyond this are ns of UTC already: exports can be made that way."""

_RANK = re.compile(r"(?i)(?:^|[^a-z])rank[_.-]?(\d+)")
MEASURED = ("makespan_ns", "first_layer_exposed_ns", "exposed_load_ns", "load_busy_ns", "compute_busy_ns", "hidden")
"""Measures that are compared across ranks, as their medians over each rank's measured forwards."""


@dataclass(frozen=True)
class Rank:
    """One process on one device of one file, or a file that could not be read or holds no forward."""

    path: str
    label: str
    error: str | None = None
    """why there is nothing: one line; None where the file was read"""
    process: int | None = None
    device: int | None = None
    forwards: int = 0
    """how many measured forwards stand behind the medians"""
    measures: Measures | None = None
    """medians over the measured forwards; None where there are none"""
    stalls: Mapping[int, int] | None = None
    """by layer, the median idle ns before its first compute operation"""
    passes: Mapping[int, tuple[int, int]] | None = None
    """by index of forward, begin and end in ns of UTC; None where the file does not say when its session began"""
    worst: Finding | None = None
    """the costliest finding of the file"""


@dataclass(frozen=True)
class Spread:
    """A measure across ranks, in its own unit; ``share`` is the distance of the extremes over the median."""

    measure: str
    ranks: int
    low: float
    middle: float
    high: float
    share: float | None


@dataclass(frozen=True)
class Straggler:
    """A rank that takes longer than the others, and what it spends the time on that they do not."""

    label: str
    late_ns: int
    """by how much its makespan exceeds the median of the others"""
    share: float
    """of that median"""
    category: str
    """the category of the accounting that grew most"""
    category_ns: int
    layer: int | None
    """the layer whose stall grew most; None where there are no layers or none grew"""
    layer_ns: int


@dataclass(frozen=True)
class Alignment:
    """How far apart ranks end the same forward, on clocks aligned by the start of each file's session."""

    forwards: int
    """how many forwards at least two ranks have"""
    skew_ns: int
    """median over those forwards: from the first rank's end to the last one's"""
    late_ns: Mapping[str, int]
    """by rank, the median over those forwards of its end after that of the rank that ends first"""


@dataclass(frozen=True)
class Fleet:
    """Everything that can be said about many ranks."""

    ranks: tuple[Rank, ...]
    """in the order of their labels"""
    spreads: tuple[Spread, ...]
    stragglers: tuple[Straggler, ...]
    """the latest first"""
    alignment: Alignment | None
    """None where clocks cannot be aligned"""
    unaligned: str | None
    """why not; None where they are"""


def ranks_of(path: Path, report: Report, capture: Capture) -> tuple[Rank, ...]:
    """Return one rank per (process, device) with forwards in a file, or one without measures where it has none."""
    places = sorted({(forward.process, forward.device) for forward in report.forwards})
    worst = report.findings[0] if report.findings else None
    if not places:
        return (Rank(str(path), rank_label(path), worst=worst),)
    labels = [rank_label(path) if len(places) == 1 else f"{rank_label(path)}:{pid}/{gpu}" for pid, gpu in places]
    return tuple(
        _rank(path, label, [one for one in report.forwards if (one.process, one.device) == place], worst, capture)
        for label, place in zip(labels, places, strict=True)
    )


def failed_rank(path: Path, error: str) -> Rank:
    """Return the row of a file from which nothing came."""
    return Rank(str(path), rank_label(path), error=error)


def compare_ranks(ranks: Sequence[Rank]) -> Fleet:
    """Return what ranks have in common and what sets some of them apart."""
    ordered = tuple(sorted(ranks, key=lambda rank: (_natural(rank.label), rank.path)))
    measured = [rank for rank in ordered if rank.measures is not None]
    spreads = [_spread(name, measured) for name in (*MEASURED, *(f"accounting.{name}" for name in CATEGORIES))]
    late = [found for rank in measured if (found := _straggler(rank, measured)) is not None]
    unaligned = _why_unaligned(measured)
    return Fleet(
        ranks=ordered,
        spreads=tuple(spread for spread in spreads if spread is not None),
        stragglers=tuple(sorted(late, key=lambda one: -one.late_ns)),
        alignment=None if unaligned else _align(measured),
        unaligned=unaligned,
    )


def rank_label(path: Path) -> str:
    """Return the rank's number where the file's name has one, else the name without its suffix."""
    found = _RANK.search(path.name)
    return f"rank {int(found.group(1))}" if found else path.stem


def _rank(path: Path, label: str, forwards: Sequence[Forward], worst: Finding | None, capture: Capture) -> Rank:
    summary = summarise(forwards)
    measured = [forward for forward in forwards if not forward.warmup]
    stalls: dict[int, list[int]] = {}
    for forward in measured:
        for layer in forward.layers:
            stalls.setdefault(layer.layer, []).append(layer.stall_ns)
    epoch = capture.session_start_ns
    shift = 0 if forwards[0].t0_ns > _EPOCH_NS else epoch
    return Rank(
        path=str(path),
        label=label,
        process=forwards[0].process,
        device=forwards[0].device,
        forwards=len(measured),
        measures=summary.measures if summary else None,
        stalls={layer: round(median(values)) for layer, values in sorted(stalls.items())},
        passes=None if shift is None else {one.index: (one.t0_ns + shift, one.t1_ns + shift) for one in measured},
        worst=worst,
    )


def _value(rank: Rank, measure: str) -> float | None:
    if rank.measures is None:
        return None
    group, _, name = measure.rpartition(".")
    if group:
        return rank.measures.accounting[name]
    found: float | None = getattr(rank.measures, name)
    return found


def _stall(rank: Rank, layer: int) -> float | None:
    return (rank.stalls or {}).get(layer)


def _spread(measure: str, ranks: Sequence[Rank]) -> Spread | None:
    values = [value for rank in ranks if (value := _value(rank, measure)) is not None]
    if not values:
        return None
    middle = median(values)
    share = (max(values) - min(values)) / middle if middle else None
    return Spread(measure, len(values), min(values), middle, max(values), share)


def _straggler(rank: Rank, ranks: Sequence[Rank]) -> Straggler | None:
    """Return in what a rank is late against the others, or None where it is not."""
    others = [one for one in ranks if one is not rank]
    makespans = [value for one in others if (value := _value(one, "makespan_ns")) is not None]
    own = _value(rank, "makespan_ns")
    if own is None or not makespans:
        return None
    usual = median(makespans)
    deviation = _MAD_TO_DEVIATION * median(abs(value - usual) for value in makespans)
    late = own - usual
    if late <= max(LATE_SHARE * usual, LATE_DEVIATIONS * deviation):
        return None
    grown = {name: _growth(rank, others, partial(_value, measure=f"accounting.{name}")) for name in CATEGORIES}
    layers = {layer: _growth(rank, others, partial(_stall, layer=layer)) for layer in rank.stalls or {}}
    category = max(grown, key=lambda name: grown[name])
    layer = max(layers, key=lambda number: layers[number], default=None)
    has_layer = layer is not None and layers[layer] > 0
    return Straggler(
        label=rank.label,
        late_ns=round(late),
        share=late / usual if usual else 0.0,
        category=category,
        category_ns=grown[category],
        layer=layer if has_layer else None,
        layer_ns=layers[layer] if has_layer and layer is not None else 0,
    )


def _growth(rank: Rank, others: Sequence[Rank], value: Callable[[Rank], float | None]) -> int:
    """Return by how much a rank's value exceeds the median of the others, 0 where either is missing."""
    theirs = [found for one in others if (found := value(one)) is not None]
    own = value(rank)
    return 0 if own is None or not theirs else round(own - median(theirs))


def _ends(ranks: Sequence[Rank]) -> dict[str, dict[int, int]]:
    """Return when each rank ended each forward that others have too, in ns of UTC, by the forward's index."""
    ends = {rank.label: {index: end for index, (_, end) in (rank.passes or {}).items()} for rank in ranks}
    shared = {index for one in ends.values() for index in one if sum(index in other for other in ends.values()) > 1}
    return {label: {index: end for index, end in one.items() if index in shared} for label, one in ends.items()}


def _why_unaligned(ranks: Sequence[Rank]) -> str | None:
    if sum(bool(rank.passes) for rank in ranks) < 2:
        return "fewer than two ranks say when their session began"
    if not any(_ends(ranks).values()):
        return "no forward has the same index in two ranks"
    times = [rank.passes.values() for rank in ranks if rank.passes]
    if max(min(begin for begin, _ in one) for one in times) > min(max(end for _, end in one) for one in times):
        return "their forwards do not overlap in time: were they captured in different runs?"
    return None


def _align(ranks: Sequence[Rank]) -> Alignment:
    """Return how far apart ranks end the same forwards."""
    ends = _ends(ranks)
    shared = sorted({index for one in ends.values() for index in one})
    first = {index: min(one[index] for one in ends.values() if index in one) for index in shared}
    last = {index: max(one[index] for one in ends.values() if index in one) for index in shared}
    late = {label: [one[index] - first[index] for index in shared if index in one] for label, one in ends.items()}
    return Alignment(
        forwards=len(shared),
        skew_ns=round(median(last[index] - first[index] for index in shared)),
        late_ns={label: round(median(values)) for label, values in late.items() if values},
    )


def _natural(text: str) -> list[tuple[int, int, str]]:
    """Return a key by which ``rank 10`` follows ``rank 9``."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", text) if part]
