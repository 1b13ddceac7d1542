"""``traceview timeline``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from traceview.commands.options import Slice, forward_options, read_trace, report_options, trace_options
from traceview.commands.pictures import picture_options, picture_style
from traceview.errors import SelectionError
from traceview.output import check_output, write_whole
from traceview.progress import steps

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.analysis.timeline import Timeline
    from traceview.report import Report


@click.command("timeline")
@trace_options
@forward_options
@click.option("--forward", type=int, metavar="N", help="The forward with this index, from 0; else the median one.")
@click.option("--layers", type=Slice(int), metavar="A:B", help="Only the time of layers A to B - 1.")
@picture_options
def command(
    output: Path, force: bool, forward: int | None, layers: tuple[int | None, int | None] | None, **chosen: Any
) -> None:
    """Draw one forward as a picture: what ran on the host and on each stream, and why compute had holes.

    Without a forward in the trace the whole trace is drawn, without holes.

    \b
    Examples:
      traceview timeline run.sqlite -o run.png
      traceview timeline run.sqlite -o first.svg --forward 3 --layers 0:4
    """
    style = picture_style(output)
    check_output(output, force=force, inputs=[chosen["path"]])
    from traceview.render.figure_timeline import draw_timeline

    with steps(2, chosen["path"]) as step:
        step("reading")
        drawn = _timeline(chosen, forward)
        step("drawing")
        picture = draw_timeline(drawn, style, layers)
    write_whole(output, picture)


def _timeline(chosen: dict[str, Any], index: int | None) -> Timeline:
    from traceview.analysis.drawings import median_timeline
    from traceview.analysis.report import build_report
    from traceview.analysis.timelines import forward_timelines

    trace, options = read_trace(chosen), report_options(chosen)
    made = build_report(trace, options)
    if index is not None:
        return forward_timelines(trace, options.forwards, _by_index(made, index))[0]
    drawn = median_timeline(trace, options.forwards, made)
    if drawn is None:
        raise SelectionError("this trace holds no work on a GPU", "capture with nsys profile --trace=cuda,nvtx")
    return drawn


def _by_index(made: Report, index: int) -> tuple[tuple[str, Any], ...]:
    found = [one for one in made.forwards if one.index == index]
    if not found:
        there = ", ".join(dict.fromkeys(f"{one.index} ({one.name})" for one in made.forwards))
        raise SelectionError(f"no forward {index} in this trace", f"there is: {there or 'none'}")
    return (("warm-up forward" if found[0].warmup else "forward", found[0]),)
