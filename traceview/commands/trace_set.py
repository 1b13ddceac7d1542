"""Options of commands that take several traces, and reading them."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from traceview.commands.completion import complete_effects
from traceview.commands.options import forward_options, read_trace, report_options, trace_options
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceview.analysis.compare import Comparison, Thresholds
    from traceview.analysis.compare_sides import Captured
    from traceview.commands.options import Command
    from traceview.render.tables import Page

MAX_WIDTH = 100
_NOT_FOR_MANY = ("path", "thresholds")
"""the one trace, and the thresholds of findings, in whose place such commands have their own"""


class MinEffect(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``measure=min:5%``; the measure may be left out for all."""

    name = "measure=min:5%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the measure's name (nothing for all) and the share."""
        if not isinstance(value, str):
            return value
        from traceview.analysis.compare_limits import measure_named, share_of

        measure, _, least = value.rpartition("=")
        try:
            return measure and measure_named(measure), share_of(least)
        except UsageError as error:
            self.fail(f"{error.message}: {error.hint}", param, ctx)


def threshold_option(command: Command) -> Command:
    """Add the option that says which differences count."""
    option = click.option(
        "--threshold",
        "min_effects",
        type=MinEffect(),
        multiple=True,
        metavar="MEASURE=min:5%",
        shell_complete=complete_effects,
        help="Smallest difference that counts, of one measure or, without MEASURE=, of all; 2 % by default.",
    )
    decorated: Command = option(command)
    return decorated


def smallest_effects(min_effects: Sequence[tuple[str, float]]) -> Thresholds:
    """Return the smallest differences that count; of several for the same measure, the last."""
    from traceview.analysis.compare import MIN_EFFECT, Thresholds

    everywhere = [share for measure, share in min_effects if not measure]
    by_measure = {measure: share for measure, share in min_effects if measure}
    return Thresholds(everywhere[-1] if everywhere else MIN_EFFECT, by_measure)


def set_options(command: Command) -> Command:
    """Add the options that choose a part of every trace and say how forwards are found."""
    decorated: Any = trace_options(forward_options(command))
    decorated.__click_params__ = [one for one in decorated.__click_params__ if one.name not in _NOT_FOR_MANY]
    chosen: Command = decorated
    return chosen


def capture(path: Path, chosen: dict[str, Any]) -> Captured:
    """Read one trace and report on it with the chosen options."""
    from traceview.analysis.compare_sides import Captured
    from traceview.analysis.report import build_report

    options = chosen | {"path": path, "thresholds": ()}
    trace = read_trace(options)
    return Captured(trace, build_report(trace, report_options(options)))


def refuse_repeats(paths: Sequence[Path]) -> None:
    """Raise ``UsageError`` where a side holds a trace twice, since its forwards would count as more than they are."""
    met: set[Path] = set()
    for path in paths:
        if path.resolve() in met:
            raise UsageError(f"{path} is given twice on one side", "name each capture once")
        met.add(path.resolve())


def compare_captures(
    base: Sequence[Captured], new: Sequence[Captured], thresholds: Thresholds, chosen: dict[str, Any]
) -> Comparison:
    """Compare two sides; traces without forwards by a range that stands for one, else file by file."""
    from traceview.analysis.compare import compare
    from traceview.analysis.compare_calls import repeated_range
    from traceview.analysis.compare_sides import gather_sides

    sampled = "forwards"
    if not all(one.has_forwards for one in (*base, *new)):
        stand_in = repeated_range([one.trace for one in (*base, *new)])
        if stand_in is None:
            sampled = "files"
        else:
            sampled = f"repeats of range {stand_in[0]}"
            base, new = ([_forwards_by_range(one, stand_in[1], chosen) for one in side] for side in (base, new))
            sampled = sampled if all(one.has_forwards for one in (*base, *new)) else "files"
    return compare(*gather_sides(base, new), thresholds, sampled)


def draw(page: Page, style: str) -> str:
    """Return a page as text for the terminal that it goes to, or as Markdown."""
    from traceview.render.page import draw_markdown, draw_text

    if style == "markdown":
        return draw_markdown(page)
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MAX_WIDTH)
    return draw_text(page, colour=colour, width=width, ascii_only=not _shows("±→—…·"))


def _forwards_by_range(captured: Captured, expression: str, chosen: dict[str, Any]) -> Captured:
    from traceview.analysis.report import build_report

    options = report_options(chosen | {"thresholds": (), "forward_range": expression})
    return replace(captured, report=build_report(captured.trace, options))


def _shows(characters: str) -> bool:
    """Return whether standard output can show these characters."""
    try:
        characters.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
