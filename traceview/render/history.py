"""A measure over saved runs: as a page for people, and as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from traceview.analysis.compare import CANNOT_TELL, IMPROVED, REGRESSED, SAME
from traceview.analysis.compare_measures import MEASURES
from traceview.render.diff_values import change, value
from traceview.render.shown import shown
from traceview.render.tables import BAD, GOOD, MUTED, STRONG, Column, Line, Page, Part, Section, Table, line, name, row

if TYPE_CHECKING:
    from traceview.analysis.compare_history import Followed, Point

SCHEMA = "traceview.history/1"
BAR_WIDTH = 16
_ROLES = {IMPROVED: GOOD, REGRESSED: BAD, SAME: MUTED, CANNOT_TELL: STRONG}
_COMMIT_SHOWN = 9


def layout(followed: Followed) -> Page:
    """Return the page: where the measure stands now and since the first run, then a row per run."""
    unit = MEASURES[followed.measure].unit
    last = followed.points[-1]
    now = value(unit, last.row.new.median) if last.row.new else "?"
    many = len(followed.points)
    which = f" in the last of {many} runs" if many > 1 else " in the only run"
    first: list[str | Part] = [Part(f"{title(followed)}: {now}", STRONG), which]
    if many > 1:
        why = f"; {last.row.reason}" if last.row.reason else ""
        moved = f" against the one before ({_moved(last)}{why})"
        first += [", ", Part(last.row.verdict, _ROLES[last.row.verdict]), moved]
    if many > 2 and followed.overall is not None:
        overall = followed.overall
        first += [f"; {change(overall)} since the first, ", Part(overall.verdict, _ROLES[overall.verdict])]
    section = Section("Runs", "medians of measured forwards", (_table(followed, unit),), detail=False)
    return Page((line(*first, "."),), (), (section,))


def title(followed: Followed) -> str:
    """Return the measure in words, with its layer."""
    words = MEASURES[followed.measure].title
    return f"{words} of {followed.subject}" if followed.subject else words


def render(followed: Followed) -> str:
    """Return the runs as one JSON object; values in ns, shares of 1 or bytes per ns."""
    unit = MEASURES[followed.measure].unit
    made = {
        "schema": SCHEMA,
        "measure": followed.measure,
        "subject": followed.subject or None,
        "unit": unit,
        "runs": [_run(point) for point in followed.points],
    }
    return json.dumps(made, indent=2, allow_nan=False) + "\n"


def _run(point: Point) -> dict[str, Any]:
    spread, difference = point.row.new, point.row.difference
    return {
        "label": point.run.label,
        "commit": point.run.commit,
        "trace": point.run.trace,
        "saved_at": point.run.saved_at,
        "n": spread.n if spread else 0,
        "median": spread.median if spread else None,
        "low": spread.low if spread else None,
        "high": spread.high if spread else None,
        "difference": difference.shift if difference else None,
        "verdict": point.row.verdict,
        "reason": point.row.reason,
    }


def _table(followed: Followed, unit: str) -> Table:
    columns = (
        Column("saved"),
        Column("commit"),
        Column("label"),
        Column("forwards", right=True, minor=True),
        Column("median", right=True),
        Column("against before", right=True),
        Column(""),
        Column("from 0"),
    )
    highest = max((abs(point.row.new.median) for point in followed.points if point.row.new), default=0.0)
    rows = [_cells(point, unit, highest, first=index == 0) for index, point in enumerate(followed.points)]
    return Table(columns, tuple(rows))


def _cells(point: Point, unit: str, highest: float, *, first: bool) -> tuple[Line, ...]:
    spread = point.row.new
    median = spread.median if spread else 0.0
    bar = "=" * round(BAR_WIDTH * abs(median) / highest) if highest else ""
    verdict = Part("" if first else point.row.verdict, _ROLES[point.row.verdict])
    return row(
        shown(point.run.saved_at)[:16].replace("T", " "),
        name(point.run.commit[:_COMMIT_SHOWN]) if point.run.commit else Part("none", MUTED),
        name(point.run.label or "-", 24),
        str(spread.n if spread else 0),
        value(unit, median),
        "" if first else _moved(point),
        verdict,
        bar,
    )


def _moved(point: Point) -> str:
    return change(point.row) or "0"
