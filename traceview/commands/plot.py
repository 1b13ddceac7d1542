"""``traceview plot``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traceview.commands.options import forward_options, read_trace, report_options, trace_options
from traceview.commands.pictures import picture_options, picture_style
from traceview.output import check_output, write_whole
from traceview.progress import steps

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Trace
    from traceview.report import Report

PLOTS = ("overlap", "copies", "accounting", "history")


@click.command("plot")
@click.argument("what", type=click.Choice(PLOTS))
@trace_options
@forward_options
@picture_options
def command(what: str, output: Path, force: bool, **chosen: Any) -> None:
    """Draw one measure of a trace as a picture.

    overlap: what runs beside what; copies: pieces and rates by size; accounting: where the time of each forward went;
    history: the forwards in their order.

    \b
    Examples:
      traceview plot accounting run.sqlite -o accounting.png
      traceview plot copies run.sqlite -o copies.svg
    """
    style = picture_style(output)
    check_output(output, force=force, inputs=[chosen["path"]])
    from traceview.analysis.report import build_report

    with steps(2, chosen["path"]) as step:
        step("reading")
        trace, options = read_trace(chosen), report_options(chosen)
        made = build_report(trace, options)
        step("drawing")
        picture = _draw(what, trace, options, made, style)
    write_whole(output, picture)


def _draw(what: str, trace: Trace, options: Any, made: Report, style: str) -> bytes:
    if what == "overlap":
        from traceview.render.figure_overlap import draw_overlap

        return draw_overlap(made, style)
    if what == "copies":
        from traceview.analysis.drawings import collect_drawings
        from traceview.render.figure_copies import draw_copies

        return draw_copies(made, collect_drawings(trace, options.forwards, made), style)
    if what == "accounting":
        from traceview.render.figure_accounting import draw_accounting

        return draw_accounting(made, style)
    from traceview.render.figure_history import draw_history, points_of

    return draw_history(points_of(made), style)
