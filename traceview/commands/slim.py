"""``traceview slim``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from traceview.commands.options import Slice, forward_options, report_options
from traceview.units import counted


@click.command("slim")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("output", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--window", type=Slice(float), metavar="A:B", help="Only from A to B ms after the first event.")
@click.option("--keep-metrics", is_flag=True, help="Keep sampled GPU and NIC counters.")
@click.option("--verify", is_flag=True, help="Compare both reports, number for number, before OUT is written.")
@click.option("--force", is_flag=True, help="Overwrite OUT.")
@click.option("--nsys", metavar="PROGRAM", help="The nsys that exports a .nsys-rep; else $NSYS, PATH, /opt/nvidia.")
@forward_options
def command(source: Path, output: Path, keep_metrics: bool, verify: bool, force: bool, **chosen: Any) -> None:
    """Make a trace small enough to commit, without host, user, environment, command line and paths.

    OUT holds the tables and rows of IN that the analyses read, of the chosen forwards or time, and the texts that these
    point to, with paths cut to file names. It reports the same of the kept forwards, which keep their numbers, as
    `traceview report IN --forwards A:B` does. IN is never changed. What you named yourself (ranges, kernels, Python
    functions) stays: look at it before you publish it.

    \b
    Examples:
      traceview slim run.sqlite small.sqlite --forwards 2:4 --verify
      traceview slim run.sqlite small.sqlite --window 1200:1300 --keep-metrics
    """
    from traceview.slimming import SlimOptions, slim

    low, high = chosen["window"] or (None, None)
    window = None if chosen["window"] is None else (low or 0.0, float("inf") if high is None else high)
    options = SlimOptions(report_options(chosen), window, keep_metrics, verify, force, chosen["nsys"])
    made = slim(source, output, options)
    sizes = f"{made.n_bytes / 1e6:.2f} MB of {made.n_bytes_before / 1e6:.2f} MB"
    click.echo(
        f"{output}: {sizes}, {counted(made.forwards, 'forward')}"
        + (f"; {made.compared:,} values of both reports are equal" if verify else "")
    )
    if made.other_inflation:
        click.echo(
            f"note: compute inflation of {len(made.other_inflation)} of them differs from the report of all forwards: "
            "it is measured against the kernels of the forwards that are reported together",
            err=True,
        )
