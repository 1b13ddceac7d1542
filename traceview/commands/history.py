"""``traceview history``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.analysis.compare_limits import suggestion
from traceview.commands.completion import complete_measures
from traceview.commands.trace_set import draw
from traceview.errors import UsageError
from traceview.output import check_output, write_whole

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

PICTURES = (".png", ".svg", ".pdf")


@click.command("history")
@click.argument("database", metavar="RUNS.DB", type=click.Path(path_type=Path))
@click.option(
    "--measure",
    default="makespan",
    show_default=True,
    metavar="NAME",
    shell_complete=complete_measures,
    help="What to follow over the runs.",
)
@click.option("--layer", type=click.IntRange(0), metavar="N", help="Of this layer, for a measure of layers.")
@click.option("--label", metavar="TEXT", help="Only runs with this label.")
@click.option("--format", "style", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.option("--plot", type=click.Path(path_type=Path), metavar="FILE", help="Also draw it, as .png, .svg or .pdf.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def command(database: Path, measure: str, style: str, plot: Path | None, **chosen: Any) -> None:
    """Tell how a measure went over the saved runs, each against the one before.

    \b
    Examples:
      traceview history runs.db --label nightly
      traceview history runs.db --measure layer_load_busy --layer 3 --plot load.png
    """
    from traceview.analysis.compare_history import follow
    from traceview.analysis.compare_measures import layer_subject
    from traceview.history import labels, layers_with, open_history, read_runs

    if plot is not None:
        check_output(plot, force=chosen["force"], inputs=[database])
        if plot.suffix not in PICTURES:
            raise UsageError(f"{plot} is no picture", f"end it in {', '.join(PICTURES)}")
    subject = "" if chosen["layer"] is None else layer_subject(chosen["layer"])
    with open_history(database) as connection:
        name = _known(connection, measure)
        _check_layer(name, chosen["layer"], layers_with(connection, name))
        runs = read_runs(connection, (name, "makespan_ns"), subject, chosen["label"])
        known = labels(connection)
    if not runs:
        raise UsageError(f"no run has the label {chosen['label']!r}", suggestion(chosen["label"], known))
    followed = follow(runs, name, subject)
    if not followed.points:
        of = f" of {subject}" if subject else ""
        raise UsageError(f"no such run has {name}{of}", f"see: traceview history {database}")
    if style == "json":
        from traceview.render.history import render

        click.echo(render(followed), nl=False)
    else:
        from traceview.render.history import layout

        click.echo(draw(layout(followed), style), nl=False)
    if plot is not None:
        from traceview.render.history_figure import picture

        write_whole(plot, picture(followed, plot.suffix.removeprefix(".")))


def _check_layer(measure: str, layer: int | None, layers: Sequence[int]) -> None:
    """Raise ``UsageError`` where a measure of layers comes without one, or one of whole forwards, or no run, has it."""
    if layers and layer is None:
        raise UsageError(f"{measure} is a measure of layers", f"name one: --layer {layers[0]}")
    if layer is not None and not layers:
        raise UsageError(f"{measure} is no measure of layers", f"--measure layer_load_busy --layer {layer}")
    if layer is not None and layer not in layers:
        raise UsageError(f"no run has {measure} of layer {layer}", f"there is: {', '.join(map(str, layers))}")


def _known(connection: sqlite3.Connection, measure: str) -> str:
    """Return the full name of a measure that some run has."""
    from traceview.history import measure_names

    there = measure_names(connection)
    if not there:
        raise UsageError("no saved run has a forward", "save one that has: see traceview report TRACE")
    for name in (measure, f"{measure}_ns"):
        if name in there:
            return name
    raise UsageError(f"no saved run has {measure!r}", suggestion(measure, there))
