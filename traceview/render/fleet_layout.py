"""Lays ranks side by side out: who is late and why, one row per rank, the spread of every measure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.tables import (
    BAD,
    GOOD,
    MUTED,
    STRONG,
    Column,
    Page,
    Part,
    Section,
    Table,
    line,
    name,
    row,
    without_empty_columns,
)
from traceview.units import count, duration, milliseconds, percent

if TYPE_CHECKING:
    from traceview.analysis.fleet import Fleet, Rank, Spread, Straggler
    from traceview.render.tables import Line

_RANK_COLUMNS = (
    Column("rank"),
    Column("forwards", right=True),
    Column("makespan ms", right=True),
    Column("first layer ms", right=True, minor=True),
    Column("exposed load ms", right=True),
    Column("hidden", right=True, minor=True),
    Column("ends after first ms", right=True, minor=True),
    Column("worst finding", wraps=True),
)
_SPREAD_COLUMNS = (
    Column("measure"),
    Column("ranks", right=True),
    Column("lowest", right=True),
    Column("median", right=True),
    Column("highest", right=True),
    Column("highest - lowest", right=True),
)
_RATIOS = ("hidden", "pipeline_efficiency")


def layout(fleet: Fleet) -> Page:
    """Return the page of a comparison of ranks."""
    sections = [Section("Ranks", "medians over the measured forwards of each", (_ranks(fleet),), detail=False)]
    if fleet.spreads:
        spreads = Table(_SPREAD_COLUMNS, tuple(_spread(spread) for spread in fleet.spreads if spread.high))
        sections.append(Section("Spread", "each measure across ranks, times in ms", (spreads,)))
    return Page(verdict=_verdict(fleet), header=_header(fleet), sections=tuple(sections))


def _verdict(fleet: Fleet) -> tuple[Line, ...]:
    """Return one line per straggler, or one that says that there is none."""
    measured = sum(rank.measures is not None for rank in fleet.ranks)
    if fleet.stragglers:
        return tuple(_late(straggler) for straggler in fleet.stragglers)
    if measured > 1:
        return (line(Part(f"No rank of {measured} is late.", GOOD)),)
    return (
        line(Part(f"{measured} of {count(len(fleet.ranks))} ranks could be measured: nothing to compare.", STRONG)),
    )


def _late(straggler: Straggler) -> Line:
    cause = f": {straggler.category} +{duration(straggler.category_ns)}" if straggler.category_ns > 0 else ""
    layer = (
        "" if straggler.layer is None else f", most before layer {straggler.layer} (+{duration(straggler.layer_ns)})"
    )
    late = f" is late by {duration(straggler.late_ns)} ({percent(straggler.share)})"
    return line(name(straggler.label), Part(late, BAD), f"{cause}{layer}.")


def _header(fleet: Fleet) -> tuple[Line, ...]:
    failed = sum(rank.error is not None for rank in fleet.ranks)
    empty = sum(rank.error is None and rank.measures is None for rank in fleet.ranks)
    words = [f"{count(len(fleet.ranks))} ranks"]
    words += [f"{count(failed)} could not be read"] if failed else []
    words += [f"{count(empty)} without measured forwards"] if empty else []
    lines = [line(Part(" · ".join(words), MUTED))]
    if fleet.alignment is not None:
        skew = f"The same forward ends {duration(fleet.alignment.skew_ns)} apart on the median"
        lines.append(
            line(Part(f"{skew}, on clocks aligned by session start: across machines as exact as their clocks.", MUTED))
        )
    elif fleet.unaligned is not None and fleet.spreads:
        lines.append(line(Part(f"Clocks are not aligned: {fleet.unaligned}", MUTED)))
    return tuple(lines)


def _ranks(fleet: Fleet) -> Table:
    late = {straggler.label for straggler in fleet.stragglers}
    after = fleet.alignment.late_ns if fleet.alignment is not None else {}
    return without_empty_columns(
        Table(_RANK_COLUMNS, tuple(_rank(rank, rank.label in late, after.get(rank.label)) for rank in fleet.ranks))
    )


def _rank(rank: Rank, late: bool, after_ns: int | None) -> tuple[Line, ...]:
    label = name(rank.label)
    if rank.error is not None:
        return row(label, "", "", "", "", "", "", Part(name(rank.error, 200).text, BAD))
    if rank.measures is None:
        return row(label, count(rank.forwards), "", "", "", "", "", Part("no measured forward", MUTED))
    measures = rank.measures
    makespan = Part(milliseconds(measures.makespan_ns), BAD if late else STRONG)
    return row(
        label,
        count(rank.forwards),
        makespan,
        _ms(measures.first_layer_exposed_ns),
        _ms(measures.exposed_load_ns),
        "" if measures.hidden is None else percent(measures.hidden),
        _ms(after_ns),
        "none" if rank.worst is None else f"{rank.worst.id} ({duration(rank.worst.cost_ns)})",
    )


def _ms(ns: int | None) -> str:
    return "" if ns is None else milliseconds(ns)


def _spread(spread: Spread) -> tuple[Line, ...]:
    write = percent if spread.measure in _RATIOS else milliseconds
    title = spread.measure.removeprefix("accounting.").removesuffix("_ns").replace("_", " ")
    apart = "" if spread.share is None else percent(spread.share)
    return row(title, count(spread.ranks), *(write(value) for value in (spread.low, spread.middle, spread.high)), apart)
