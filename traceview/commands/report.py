"""``traceview report``."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from traceview.commands.completion import complete_edits
from traceview.commands.options import (
    forward_options,
    machine_options,
    read_trace,
    report_options,
    trace_options,
)
from traceview.output import check_output, print_page, write_whole
from traceview.progress import steps
from traceview.render import RENDERERS

MAX_WIDTH = 100


@click.command("report")
@trace_options
@forward_options
@machine_options
@click.option("--metrics", is_flag=True, help="Also read PCIe counters of GPU metrics: what else came into the GPU.")
@click.option(
    "--format",
    "style",
    type=click.Choice(list(RENDERERS)),
    default="text",
    show_default=True,
    help="How the report is written.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE, not to the screen."
)
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@click.option(
    "--what-if",
    metavar="EDITS",
    shell_complete=complete_edits,
    default="",
    help="Predict the makespan with causes mended: coalesce,pin,no-sync,own-stream.",
)
@click.option("--checklist", is_flag=True, help="Also answer the field's questions one by one.")
def command(style: str, output: Path | None, **chosen: Any) -> None:
    """Tell what a trace's layer-by-layer loading costs and where the time goes.

    TRACE is an SQLite export of Nsight Systems, or a .nsys-rep report where nsys is installed. It is never changed.

    \b
    Examples:
      traceview report run.sqlite
      traceview report run.sqlite --format json -o run.json
      traceview report run.sqlite --format html -o run.html
      traceview report run.sqlite --what-if pin,no-sync --checklist
      traceview report run.sqlite --forward-range '^prefill' --allow-sync '^sampling'
    """
    if output is not None:
        check_output(output, force=chosen["force"], inputs=[chosen["path"]])
    from traceview.analysis.report import build_report

    with steps(3, chosen["path"]) as step:
        step("reading")
        edits = tuple(edit.strip() for edit in chosen["what_if"].split(",") if edit.strip())
        trace, options = read_trace(chosen), replace(report_options(chosen), what_if=edits)
        step("analysing")
        made = build_report(trace, options)
        if chosen["checklist"]:
            from traceview.analysis.checklist import check

            made = replace(made, checklist=check(made, options.machine.topology, options.thresholds))
        step("drawing")
        text = _page(trace, options, made) if style == "html" else _draw(made, style, to_terminal=output is None)
    if output is None and style == "html":
        print_page(text)
    elif output is None:
        click.echo(text, nl=not text.endswith("\n"))
    else:
        write_whole(output, text.encode("utf-8") if text.endswith("\n") else f"{text}\n".encode())


def _page(trace: Any, options: Any, made: Any) -> str:
    """Return a report as a page, with the charts that need the trace itself."""
    from traceview.analysis.drawings import collect_drawings

    return RENDERERS["html"](made, drawings=collect_drawings(trace, options.forwards, made))


def _draw(made: Any, style: str, *, to_terminal: bool) -> str:
    """Return a report in one of the styles; text is drawn for the terminal that it goes to."""
    if style != "text":
        return RENDERERS[style](made)
    colour = to_terminal and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = min(shutil.get_terminal_size((MAX_WIDTH, 24)).columns, MAX_WIDTH)
    return RENDERERS[style](made, colour=colour, width=width, ascii_only=to_terminal and not _shows_blocks())


def _shows_blocks() -> bool:
    """Return whether standard output can show block characters."""
    try:
        "█▏…→".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
