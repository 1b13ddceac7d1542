"""Lays the checklist out: one question after the other with its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.shown import shown
from traceview.render.tables import BAD, GOOD, MUTED, STRONG, Entry, Part, Section, line

if TYPE_CHECKING:
    from traceview.report import Report
    from traceview.report_links import Answer

_ROLES = {"yes": GOOD, "no": BAD, "unknown": STRONG}


def checklist_section(report: Report) -> tuple[Section, ...]:
    """Return the section of the checklist, none where nobody asked for it."""
    if not report.checklist:
        return ()
    about = "path, direction, mover; yes is what one hopes for"
    return (Section("Checklist", about, tuple(_entry(answer) for answer in report.checklist), detail=False),)


def _entry(answer: Answer) -> Entry:
    fix = (line(Part("→ ", MUTED), shown(answer.fix, 300)),) if answer.fix else ()
    head = line(Part(f"{answer.answer:7}", _ROLES[answer.answer]), f"  {answer.question}")
    return Entry(head, (line(Part(shown(answer.evidence, 300), MUTED)), *fix))
