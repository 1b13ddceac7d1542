"""Lays out the calls that block the host, the accidental ones first and the costly before the cheap."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from statistics import median
from typing import TYPE_CHECKING

from traceview.render.tables import (
    BAD,
    MUTED,
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
from traceview.render.verdict import measured_forwards
from traceview.units import count, counted, duration, milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.report import Report, Sync

SHOWN = 8
OUTSIDE_SHOWN = 3
CALLING_LINES_SHOWN = 6
_NUMBER = re.compile(r"(?<![A-Za-z])\d+")
_TELLING_SHARE = 0.01


@dataclass(frozen=True)
class _Group:
    """Blocking calls that differ only in forward, numbers in their range's name, and who called their caller."""

    first: Sync
    ranges: tuple[str, ...]
    count: int
    blocked_ns: int
    cost_ns: int | None

    @property
    def order(self) -> tuple[bool, bool, int, int]:
        """Return what to sort by: accidental, then inside a forward, then by cost and time blocked."""
        return not self.first.accidental, self.first.forward is None, -(self.cost_ns or 0), -self.blocked_ns


def syncs_section(report: Report) -> tuple[Section, ...]:
    """Return the blocking calls of the measured forwards, and the longest ones outside any forward."""
    measured = {forward.index for forward in measured_forwards(report)}
    inside = _grouped(sync for sync in report.syncs if sync.forward in measured)
    outside = _grouped(sync for sync in report.syncs if sync.forward is None)
    shown = inside[:SHOWN] + outside[: OUTSIDE_SHOWN if measured else SHOWN]
    if not shown:
        return ()
    columns = (
        Column("count", right=True),
        Column("call"),
        Column("is", wraps=True),
        Column("blocked ms", right=True),
        Column("cost ms", right=True),
        Column("where", wraps=True),
    )
    table = without_empty_columns(Table(columns, tuple(_group_row(group, bool(measured)) for group in shown)))
    left = len(inside) + len(outside) - len(shown)
    note = left_out(left, "kind")
    return (Section("Blocking calls", _about(len(measured)), (table, *note, *_calling_lines(shown))),)


def _calling_lines(groups: Sequence[_Group]) -> tuple[Line, ...]:
    """Return the lines of Python that call what is called in the first few groups, where the capture has them."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for group in groups:
        if group.first.where and group.first.calling_line:
            found[group.first.where[0], group.first.calling_line] += group.count
    lines = [
        line(name(called, 40), Part(" from ", MUTED), name(calling, 80), Part(f", {counted(times, 'call')}", MUTED))
        for (called, calling), times in found.items()
    ]
    return tuple(lines[:CALLING_LINES_SHOWN])


@lru_cache(maxsize=4096)
def _folded(range_name: str) -> str:
    """Return the name with ``*`` for each number that stands alone: thousands of ranges differ in nothing else."""
    return _NUMBER.sub("*", range_name)


def accidental_lines(report: Report) -> tuple[Line, ...]:
    """Return a line on what accidental calls cost a forward, where it is a part that tells."""
    forwards = measured_forwards(report)
    spent = {one.index: 0 for one in forwards}
    made = dict(spent)
    accidental = [sync for sync in report.syncs if sync.accidental and sync.forward in spent]
    for sync in accidental:
        if sync.forward is not None:
            spent[sync.forward] += sync.cost_ns or 0
            made[sync.forward] += sync.count
    if not accidental:
        return ()
    costs, counts = list(spent.values()), list(made.values())
    share = median(costs) / max(1, median(one.measures.makespan_ns for one in forwards))
    if share < _TELLING_SHARE:
        return ()
    worst = _grouped(accidental)[0]
    made_each = round(median(counts))
    costs_each = f"cost{'s' if made_each == 1 else ''} {duration(median(costs))}"
    said = f"{counted(made_each, 'accidental blocking call')} a forward {costs_each}"
    where = _where(worst)
    inside = (Part(" in "), *where) if where else ()
    api = name(worst.first.api, 32)
    return (line(f"{said} ({percent(share)}), most of it {_kind(worst)} by ", api, *inside, "."),)


def _about(measured: int) -> str:
    if not measured:
        return "whole trace; by time blocked, their cost needs a forward"
    forwards = counted(measured, "measured forward") + (" together" if measured > 1 else "")
    return f"{forwards}; cost: compute time lost, restart included"


def _grouped(syncs: Iterable[Sync]) -> list[_Group]:
    groups: dict[tuple[object, ...], list[Sync]] = defaultdict(list)
    for sync in syncs:
        place = _folded(sync.range_name) if sync.range_name else None
        key = (sync.api, sync.kind, sync.accidental, sync.boundary, sync.forward is None, place)
        groups[(*key, sync.where and sync.where[0], sync.calling_line, sync.direction)].append(sync)
    return sorted((_group(members) for members in groups.values()), key=lambda group: group.order)


def _group(members: list[Sync]) -> _Group:
    costs = [sync.cost_ns for sync in members if sync.cost_ns is not None]
    return _Group(
        first=members[0],
        ranges=tuple(dict.fromkeys(sync.range_name for sync in members if sync.range_name)),
        count=sum(sync.count for sync in members),
        blocked_ns=sum(sync.blocked_ns for sync in members),
        cost_ns=sum(costs) if costs else None,
    )


def _group_row(group: _Group, measured: bool) -> tuple[Line, ...]:
    return row(
        count(group.count),
        name(group.first.api, 32),
        _is(group, measured),
        milliseconds(group.blocked_ns),
        "" if group.cost_ns is None else milliseconds(group.cost_ns),
        _where(group),
    )


def _is(group: _Group, measured: bool) -> Line:
    """Return what the calls are: their kind, whether anybody can have wanted them, and what they copied."""
    kind = _kind(group)
    if group.first.accidental:
        return line(Part(f"accidental {kind}", BAD))
    if group.first.boundary:
        return line(Part(f"boundary, {kind}", MUTED))
    return line(f"{kind}, outside forwards" if measured and group.first.forward is None else kind)


def _kind(group: _Group) -> str:
    kind = group.first.kind.replace("_", " ")
    copied = group.first.direction if group.first.kind != "scalar_readback" else None
    return f"{kind} {copied}" if copied else kind


def _where(group: _Group) -> Line:
    """Return the innermost range, or the pattern of several, and what was called."""
    parts = []
    if group.ranges:
        several = len(group.ranges) > 1
        parts.append(name(_folded(group.ranges[0]) if several else group.ranges[0], 40))
    if group.first.where:
        parts += [Part(" at " if parts else "at ", MUTED), name(group.first.where[0], 48)]
    return tuple(parts)
