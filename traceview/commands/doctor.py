"""``traceview doctor``."""

from __future__ import annotations

from typing import Any

import click

from traceview.commands.options import forward_options, read_trace, report_options, trace_options


@click.command("doctor")
@trace_options
@forward_options
def command(**chosen: Any) -> None:
    """Tell what a trace holds and lacks for each measure, and which capture flags would add it.

    \b
    Example:
      traceview doctor run.sqlite
    """
    from traceview.analysis.doctor import abstentions, answered
    from traceview.analysis.forwards import find_forwards
    from traceview.render.doctor import render

    trace = read_trace(chosen)
    forwards = find_forwards(trace, report_options(chosen).forwards)
    click.echo(render(trace, answered(trace, forwards), abstentions(trace, forwards)), nl=False)
