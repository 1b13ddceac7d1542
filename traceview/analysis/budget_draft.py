"""Writes a budget from a good run: what it measured, plus slack."""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceview import units
from traceview.analysis.budget_quantities import LIMIT_KEYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traceview.report import Report

DEFAULT_SLACK = 0.1

PART_SLACK = 0.01
"""Share of the makespan that a part of it may grow by beside its slack: a tenth of nothing is nothing."""

_WHOLES = ("makespan_ms", "first_layer_exposed_ms")
_PARTS = ("exposed_load_later_ms", "implicit_sync_ms", "sync_ms", "host_ms")
_HIGHER_IS_BETTER = ("pipeline_efficiency", "load_rate_gb_s")
_COUNTS = ("h2d_pieces_per_layer", "accidental_syncs", "pageable_bytes")


def draft_budget(report: Report, slack: float = DEFAULT_SLACK) -> str:
    """Return the text of a budget file that the report keeps to; what the trace cannot answer is left out.

    Times may grow by ``slack``, efficiency and rate may shrink by it, counts stay. Findings of high severity are
    forbidden, and the report's own, if any, are named in a comment.
    """
    named = PurePath(report.trace.path).name
    measured = 0 if report.summary is None else report.summary.forwards
    lines = [
        f"# from {''.join(one if one.isprintable() else '?' for one in named)}: medians of "
        f"{units.counted(measured, 'forward')}, slack {100 * slack:g} %",
        "[limits]",
        *_limits(report, slack),
    ]
    high = [finding.id for finding in report.findings if finding.severity == "high"]
    if high:
        lines += [f"# this run itself has {', '.join(high)}: mend that, or leave the next line out"]
    lines.append('findings = ["!high"]')
    return "\n".join(lines) + "\n"


def _limits(report: Report, slack: float) -> Iterator[str]:
    makespan = LIMIT_KEYS["makespan_ms"].read(report) or 0.0
    for key in _WHOLES:
        yield from _line(report, key, "<=", lambda value: value * (1 + slack))
    for key in _PARTS:
        yield from _line(report, key, "<=", lambda value: value * (1 + slack) + PART_SLACK * makespan)
    for key in _HIGHER_IS_BETTER:
        yield from _line(report, key, ">=", lambda value: value * (1 - slack))
    for key in _COUNTS:
        yield from _line(report, key, "<=" if LIMIT_KEYS[key].read(report) else "==", lambda value: value)


def _line(report: Report, key: str, sign: str, allow: Callable[[float], float]) -> Iterator[str]:
    """Yield the line for one key, its number rounded to the lenient side; nothing where the trace has no value."""
    value = LIMIT_KEYS[key].read(report)
    if value is None:
        return
    bound = _lenient(allow(value), up=sign != ">=")
    measured = f"{value:.4g}" if not float(value).is_integer() else f"{value:.0f}"
    yield f'{key} = "{sign} {bound}"  # measured {measured}'


def _lenient(value: float, *, up: bool) -> str:
    """Return a number with three digits that count, rounded up or down; whole numbers as they are."""
    if float(value).is_integer():
        return f"{value:.0f}"
    digits = 2 - math.floor(math.log10(abs(value)))
    scale = 10.0**digits
    rounded = (math.ceil(value * scale) if up else math.floor(value * scale)) / scale
    return f"{rounded:.{max(digits, 0)}f}"
