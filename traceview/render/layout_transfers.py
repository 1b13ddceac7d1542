"""Lays out what moved and what ran beside it: overlap, copies with their sizes, migrations, lanes."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
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
    line,
    name,
    row,
    without_empty_columns,
)
from traceview.render.verdict import measured_forwards
from traceview.units import count, duration, milliseconds, percent, rate, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.report import CopyGroup, Overlap, Report

CLASSES = ("h2d", "d2h", "p2p", "d2d", "memset", "compute")
STREAM_PAIRS_SHOWN = 3
"""per device"""
COPIES_SHOWN = 8
ROWS_SHOWN = 6


def overlap_section(report: Report) -> tuple[Section, ...]:
    """Return the classes of work, and the stream pairs that matter most, with how much of them runs at once."""
    whole = [pair for pair in report.overlap if pair.scope == "trace"]
    classes = [pair for pair in whole if pair.a in CLASSES and pair.b in CLASSES]
    telling = sorted((pair for pair in classes if _tells(pair)), key=_class_order)
    streams = _streams_that_matter(report, [pair for pair in whole if pair.a not in CLASSES])
    if not telling and not streams:
        return ()
    columns = (
        Column("GPU", right=True),
        Column("what"),
        Column("ms", right=True),
        Column("beside"),
        Column("ms", right=True),
        Column("both ms", right=True),
        Column("overlap", right=True),
        Column("in forwards", right=True, minor=True),
        Column("uncovered ms", right=True, minor=True),
    )
    ordered = sorted((*telling, *streams), key=lambda pair: (pair.process, pair.device))
    rows = tuple(_overlap_row(report, pair) for pair in ordered)
    left = len(whole) - len(rows)
    note = (line(Part(f"{left} more pairs, and every forward, with --format json", MUTED)),) if left else ()
    about = "whole trace; share of the shorter one that runs beside the other"
    return (Section("Overlap", about, (without_empty_columns(Table(columns, rows)), *note)),)


def _tells(pair: Overlap) -> bool:
    return "compute" in (pair.a, pair.b) or pair.overlap_ns > 0


def _class_order(pair: Overlap) -> tuple[int, int, bool, int, int]:
    computing = "compute" in (pair.a, pair.b)
    return pair.process, pair.device, not computing, CLASSES.index(pair.a), CLASSES.index(pair.b)


def _streams_that_matter(report: Report, pairs: Sequence[Overlap]) -> list[Overlap]:
    """Return a few stream pairs per device: those of the stream that carries most host-to-device bytes come first."""
    carried: dict[str, int] = defaultdict(int)
    for group in report.copies:
        if group.direction == "h2d":
            carried[group.stream] += group.n_bytes

    def order(pair: Overlap) -> tuple[int, int]:
        return -max(carried[pair.a], carried[pair.b]), -min(pair.busy_a_ns, pair.busy_b_ns)

    chosen: list[Overlap] = []
    for there in sorted({(pair.process, pair.device) for pair in pairs}):
        chosen += sorted((pair for pair in pairs if (pair.process, pair.device) == there), key=order)[
            :STREAM_PAIRS_SHOWN
        ]
    return chosen


def _overlap_row(report: Report, pair: Overlap) -> tuple[Line, ...]:
    classes = pair.a in CLASSES
    return row(
        _place(report, pair.process, pair.device),
        Part(pair.a) if classes else name(pair.a, 24),
        milliseconds(pair.busy_a_ns),
        Part(pair.b) if classes else name(pair.b, 24),
        milliseconds(pair.busy_b_ns),
        milliseconds(pair.overlap_ns),
        percent(pair.ratio),
        _in_forwards(report, pair),
        _exposed(report, pair),
    )


def _in_forwards(report: Report, pair: Overlap) -> str:
    measured = {forward.index for forward in measured_forwards(report)}
    ratios = [one.ratio for one in report.overlap if one.scope in measured and _key(one) == _key(pair)]
    return percent(median(ratios)) if ratios else ""


def _key(pair: Overlap) -> tuple[int, int, str, str]:
    return pair.process, pair.device, pair.a, pair.b


def _exposed(report: Report, pair: Overlap) -> str:
    """Return the copy time that no compute covers, on the row of that class and compute."""
    if "compute" not in (pair.a, pair.b):
        return ""
    copied = pair.a if pair.b == "compute" else pair.b
    wanted = ("trace", pair.process, pair.device, copied)
    for entry in report.exposed_copy:
        if (entry.scope, entry.process, entry.device, entry.copy_class) == wanted:
            return milliseconds(entry.exposed_ns)
    return ""


def _place(report: Report, process: int, device: int) -> str:
    """Return ``process/device``, or only what tells the rows of this report apart."""
    several = len({pair.process for pair in report.overlap}) > 1
    if several:
        return f"{process}/{device}"
    return str(device) if len(report.trace.devices) > 1 else ""


def copies_section(report: Report) -> tuple[Section, ...]:
    """Return the groups of copies that carry most bytes, each with the sizes of its pieces."""
    if not report.copies:
        return ()
    groups = sorted(report.copies, key=lambda group: -group.n_bytes)
    titles = ("pieces", "bytes", "busy ms", "rate busy", "over span", "median piece")
    columns = (Column("copies"), Column("stream"), *(Column(title, right=True) for title in titles))
    table = Table(columns, tuple(_copies_row(group) for group in groups[:COPIES_SHOWN]))
    blocks: tuple[Block, ...] = (
        table,
        *_more(len(groups) - COPIES_SHOWN, "groups"),
        *_piece_sizes(groups[:COPIES_SHOWN]),
    )
    return (Section("Copies", "whole trace", blocks),)


def _copies_row(group: CopyGroup) -> tuple[Line, ...]:
    return row(
        _copies(group),
        name(group.stream, 20),
        count(group.pieces),
        size(group.n_bytes),
        milliseconds(group.busy_ns),
        "" if group.rate_busy is None else rate(group.rate_busy),
        "" if group.rate_span is None else rate(group.rate_span),
        size(group.median_bytes),
    )


def _copies(group: CopyGroup) -> Line:
    memory = Part(group.memory, BAD if group.memory == "pageable" else MUTED)
    return line(f"{group.direction} ", memory)


def _piece_sizes(groups: Iterable[CopyGroup]) -> tuple[Table, ...]:
    """Return how many pieces have which size, for the groups in which sizes differ."""
    columns = (
        Column("piece sizes"),
        Column("stream"),
        Column("from"),
        Column("to"),
        Column("pieces per power of two", wraps=True),
        Column("cost of a piece", minor=True),
    )
    rows = tuple(
        row(
            _copies(group),
            name(group.stream, 20),
            size(group.min_bytes),
            size(group.max_bytes),
            _sizes(group),
            _fit(group),
        )
        for group in groups
        if group.min_bytes < group.max_bytes
    )
    return (without_empty_columns(Table(columns, rows)),) if rows else ()


def _sizes(group: CopyGroup) -> Line:
    """Return one bar for each power of two from the smallest to the largest piece, and the count of the tallest."""
    counts = {int(power): pieces for power, pieces in group.histogram.items() if pieces}
    powers = [min(counts, default=0)]
    while powers[-1] < max(counts, default=0):
        powers.append(max(1, powers[-1] * 2))
    most = max(powers, key=lambda power: counts.get(power, 0))
    tallest = f" most {count(counts.get(most, 0))} of {size(most)}"
    return line(Part("", PLAIN, tuple(counts.get(power, 0) for power in powers)), Part(tallest, MUTED))


def _fit(group: CopyGroup) -> str:
    fit = group.fit
    if not fit.identifiable or fit.piece_cost_ns is None or fit.rate is None:
        return ""
    return f"{duration(fit.piece_cost_ns)} + bytes at {rate(fit.rate)}"


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
        for entry in ordered[:ROWS_SHOWN]
    )
    notes = tuple(_more(len(ordered) - ROWS_SHOWN, "kinds of migration"))
    return (Section("Unified-memory migrations", "not counted as copies", (Table(columns, rows), *notes)),)


def lanes_section(report: Report) -> tuple[Section, ...]:
    """Return transfers that ran beside others, and whether they shared a lane."""
    if not report.lanes:
        return ()
    columns = (
        *(Column(title) for title in ("transfers", "by", "beside")),
        *(Column(title, right=True) for title in ("bytes", "alone", "together")),
        Column("same lane"),
        Column("verdict", wraps=True),
    )
    rows = tuple(
        row(
            f"{lane.transfer_class} {lane.direction}",
            lane.mover,
            lane.beside or "",
            size(lane.n_bytes),
            "" if lane.rate_alone is None else rate(lane.rate_alone),
            "" if lane.rate_together is None else rate(lane.rate_together),
            "yes" if lane.shared_lane else "no",
            lane.verdict,
        )
        for lane in report.lanes[:ROWS_SHOWN]
    )
    notes = tuple(_more(len(report.lanes) - ROWS_SHOWN, "lanes"))
    return (Section("Lanes", "rates alone and beside other traffic", (Table(columns, rows), *notes)),)


def _more(left: int, what: str) -> Iterable[Line]:
    if left > 0:
        yield line(Part(f"{left} more {what} with --format json", MUTED))
