"""Lays out the copies: how many pieces of which size at which rate, and unified-memory migrations."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from traceview.render.tables import (
    BAD,
    MUTED,
    PLAIN,
    Block,
    Column,
    Line,
    Part,
    Section,
    Table,
    left_out,
    line,
    name,
    row,
    without_empty_columns,
)
from traceview.units import count, duration, milliseconds, rate, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report import CopyGroup, Report

COPIES_SHOWN = 8
SPARKS_SHOWN = 4
SPARK_WIDTH = 16
MIGRATIONS_SHOWN = 6


def copies_section(report: Report) -> tuple[Section, ...]:
    """Return the groups of copies that carry most bytes, each with the sizes of its pieces."""
    if not report.copies:
        return ()
    groups = sorted(report.copies, key=lambda group: -group.n_bytes)
    titles = ("pieces", "median", "bytes", "busy ms", "rate busy", "over span")
    numbers = (Column(title, right=True, minor=title == "over span") for title in titles)
    columns = (Column("copies", wraps=True), Column("stream", wraps=True), *numbers)
    table = Table(columns, tuple(_copies_row(group) for group in groups[:COPIES_SHOWN]))
    blocks: tuple[Block, ...] = (
        table,
        *left_out(len(groups) - COPIES_SHOWN, "group"),
        *_piece_sizes(groups[:COPIES_SHOWN]),
    )
    return (Section("Copies", "whole trace", blocks),)


def _copies_row(group: CopyGroup) -> tuple[Line, ...]:
    return row(
        _copies(group),
        name(group.stream, 20),
        count(group.pieces),
        size(group.median_bytes),
        size(group.n_bytes),
        milliseconds(group.busy_ns),
        "" if group.rate_busy is None else rate(group.rate_busy),
        "" if group.rate_span is None else rate(group.rate_span),
    )


def _copies(group: CopyGroup) -> Line:
    memory = Part(group.memory, BAD if group.memory == "pageable" else MUTED)
    return line(f"{group.direction} ", memory)


def _piece_sizes(groups: Sequence[CopyGroup]) -> tuple[Table, ...]:
    """Return how many pieces have which size, for the groups in which sizes differ."""
    columns = (
        Column("piece sizes", wraps=True),
        Column("stream", wraps=True),
        Column("from", right=True),
        Column("pieces by size"),
        Column("to"),
        Column("most"),
        Column("a piece costs", minor=True),
    )
    differing = [group for group in groups if len(_powers(group)) > 1][:SPARKS_SHOWN]
    rows = tuple(
        row(
            _copies(group),
            name(group.stream, 20),
            size(group.min_bytes),
            line(Part("", PLAIN, _heights(group))),
            size(group.max_bytes),
            _most(group),
            _fit(group),
        )
        for group in differing
    )
    return (without_empty_columns(Table(columns, rows)),) if rows else ()


def _powers(group: CopyGroup) -> dict[int, int]:
    return {int(power): pieces for power, pieces in group.histogram.items() if pieces}


def _heights(group: CopyGroup) -> tuple[int, ...]:
    """Return the pieces per power of two, or per two or more of them where there are too many to draw."""
    counts = _powers(group)
    powers = [min(counts)]
    while powers[-1] < max(counts):
        powers.append(max(1, powers[-1] * 2))
    step = math.ceil(len(powers) / SPARK_WIDTH)
    several = (powers[first : first + step] for first in range(0, len(powers), step))
    return tuple(sum(counts.get(power, 0) for power in together) for together in several)


def _most(group: CopyGroup) -> str:
    counts = _powers(group)
    power = max(counts, key=lambda power: counts[power])
    return f"{count(counts[power])} from {size(power)}"


def _fit(group: CopyGroup) -> str:
    fit = group.fit
    if not fit.identifiable or fit.piece_cost_ns is None or fit.rate is None:
        return ""
    return f"{duration(fit.piece_cost_ns)} + {rate(fit.rate)}"


def migrations_section(report: Report) -> tuple[Section, ...]:
    """Return unified-memory migrations, which are no copies that anybody asked for."""
    if not report.migrations:
        return ()
    columns = (
        Column("GPU", right=True),
        Column("direction"),
        Column("cause"),
        *(Column(title, right=True) for title in ("count", "bytes", "busy ms")),
    )
    ordered = sorted(report.migrations, key=lambda entry: -entry.busy_ns)
    rows = tuple(
        row(
            str(entry.device),
            entry.direction,
            entry.cause,
            count(entry.count),
            size(entry.n_bytes),
            milliseconds(entry.busy_ns),
        )
        for entry in ordered[:MIGRATIONS_SHOWN]
    )
    notes = left_out(len(ordered) - MIGRATIONS_SHOWN, "kind of migration", "kinds of migration")
    return (Section("Unified-memory migrations", "not counted as copies", (Table(columns, rows), *notes)),)
