"""Lays out what ran at the same time: overlap of classes and streams."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from traceview.render.tables import Column, Line, Part, Section, Table, left_out, name, row, without_empty_columns
from traceview.render.verdict import measured_forwards
from traceview.units import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.report import Overlap, Report

CLASSES = ("h2d", "d2h", "p2p", "d2d", "memset", "compute")
STREAM_PAIRS_SHOWN = 3
"""per device"""
TELLING_SHARE = 0.01
"""of the device's longest busy time: what is shorter has its rows in the JSON only"""


def overlap_section(report: Report) -> tuple[Section, ...]:
    """Return the classes of work, and the stream pairs that matter most, with how much of them runs at once."""
    whole = [pair for pair in report.overlap if pair.scope == "trace"]
    classes = [pair for pair in whole if pair.a in CLASSES and pair.b in CLASSES]
    longest: dict[tuple[int, int], int] = defaultdict(int)
    for pair in whole:
        place = pair.process, pair.device
        longest[place] = max(longest[place], pair.busy_a_ns, pair.busy_b_ns)
    telling = sorted((pair for pair in classes if _tells(pair, longest)), key=_class_order)
    streams = _streams_that_matter(report, [pair for pair in whole if pair.a not in CLASSES and _long(pair, longest)])
    if not telling and not streams:
        return ()
    columns = (
        Column("GPU", right=True),
        Column("what", wraps=True),
        Column("ms", right=True),
        Column("beside", wraps=True),
        Column("ms", right=True),
        Column("both ms", right=True),
        Column("overlap", right=True),
        Column("in forwards", right=True, minor=True),
        Column("uncovered ms", right=True, minor=True),
    )
    ordered = sorted((*telling, *streams), key=lambda pair: (pair.process, pair.device))
    rows = tuple(_overlap_row(report, pair) for pair in ordered)
    left = len(whole) - len(rows)
    note = left_out(left, "pair")
    about = "whole trace; share of the shorter one that runs beside the other"
    return (Section("Overlap", about, (without_empty_columns(Table(columns, rows)), *note)),)


def _tells(pair: Overlap, longest: Mapping[tuple[int, int], int]) -> bool:
    """Return whether two classes are worth a row: copies beside compute always are."""
    if "compute" in (pair.a, pair.b) and not {"memset", "d2d"} & {pair.a, pair.b}:
        return True
    return _long(pair, longest) and ("compute" in (pair.a, pair.b) or pair.overlap_ns > 0)


def _long(pair: Overlap, longest: Mapping[tuple[int, int], int]) -> bool:
    return min(pair.busy_a_ns, pair.busy_b_ns) >= TELLING_SHARE * longest[pair.process, pair.device]


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
