"""Lays predicted makespans out: what a forward would take with some causes mended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.tables import CODE, MUTED, Column, Line, Part, Section, Table, line
from traceview.units import milliseconds, percent

if TYPE_CHECKING:
    from traceview.report import Report, WhatIf


def what_if_section(report: Report) -> tuple[Section, ...]:
    """Return the section on predictions, none where nobody asked for any."""
    if not report.what_if:
        return ()
    columns = (Column("with"), Column("ms", right=True), Column("saves ms", right=True), Column("share", right=True))
    rows = tuple(_row(entry) for entry in report.what_if if entry.predicted_ns is not None)
    without: dict[str, list[Part]] = {}
    for entry in report.what_if:
        if entry.reason:
            parts = without.setdefault(entry.reason, [])
            parts += [Part(", "), Part(_edits(entry), CODE)] if parts else [Part(_edits(entry), CODE)]
    reasons = tuple(line(*parts, Part(f": {reason}", MUTED)) for reason, parts in without.items())
    table = (Table(columns, rows),) if rows else ()
    measured = f"a forward takes {milliseconds(report.what_if[0].makespan_ns)} ms; its dependencies replayed"
    return (Section("What if", measured, (*table, *reasons), detail=False),)


def _row(entry: WhatIf) -> tuple[Line, ...]:
    predicted = entry.predicted_ns or 0
    saved = entry.makespan_ns - predicted
    share = percent(saved / entry.makespan_ns) if entry.makespan_ns else ""
    return tuple(
        line(part)
        for part in (Part(_edits(entry), CODE), Part(milliseconds(predicted)), Part(milliseconds(saved)), Part(share))
    )


def _edits(entry: WhatIf) -> str:
    return ",".join(entry.edits)
