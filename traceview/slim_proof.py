"""Compares the report of a slimmed trace with that of the trace that it was made from, number for number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceview.render.json import as_dict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceview.report import Report

WHOLE_TRACE = ("copies", "migrations", "lanes", "abstained")
"""Sections that describe all of a trace and not its forwards: fewer forwards have other totals."""

_SAME_TRACE = ("product_version", "schema_version")
"""What must be the same of the ``trace`` section: path, times, facts and what was captured may differ."""

_OF_FORWARDS = ("id", "severity", "cost_ns", "share", "basis")
"""What a finding says of the forwards; its words may cite totals of the whole trace."""


@dataclass(frozen=True)
class Difference:
    """One place in which two reports differ."""

    place: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.place} is {_short(self.after)}, was {_short(self.before)}"


def compare_reports(
    before: Report, after: Report, scrub: Callable[[Any], Any], *, whole: bool
) -> tuple[int, list[Difference]]:
    """Return how many values were compared, and those that differ.

    ``scrub`` does to the texts of a report what slimming did to those of the trace. With ``whole`` the same time was
    kept and totals must agree too; else sections of the whole trace are left out, and what belongs to no forward.
    """
    reports = [scrub(_comparable(as_dict(report), whole=whole)) for report in (before, after)]
    values = [dict(_values(report, "")) for report in reports]
    places = dict.fromkeys([*values[0], *values[1]])
    absent = "absent"
    differences = [
        Difference(place, values[0].get(place, absent), values[1].get(place, absent))
        for place in places
        if values[0].get(place, absent) != values[1].get(place, absent)
    ]
    return len(places), differences


def _comparable(report: dict[str, Any], *, whole: bool) -> dict[str, Any]:
    kept = {name: section for name, section in report.items() if name not in ("trace", "abstained")}
    kept["trace"] = {name: report["trace"].get(name) for name in _SAME_TRACE}
    if whole:
        return kept
    kept = {name: section for name, section in kept.items() if name not in WHOLE_TRACE}
    kept["overlap"] = [row for row in kept["overlap"] if row["scope"] != "trace"]
    kept["exposed_copy"] = [row for row in kept["exposed_copy"] if row["scope"] != "trace"]
    kept["syncs"] = [row for row in kept["syncs"] if row["forward"] is not None]
    kept["findings"] = [
        {name: finding[name] for name in _OF_FORWARDS}
        for finding in kept["findings"] or ()
        if finding["basis"] != "geometric"
    ]
    return kept


def _values(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Yield every single value of nested dicts and lists with its place, and the length of each list."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from _values(one, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        yield f"{place}.length", len(value)
        for number, one in enumerate(value):
            yield from _values(one, f"{place}[{number}]")
    else:
        yield place, value


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
