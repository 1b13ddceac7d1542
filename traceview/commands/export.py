"""``traceview export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.commands.options import forward_options, read_trace, report_options, trace_options
from traceview.errors import OutputError, UsageError
from traceview.output import check_output, write_folder
from traceview.progress import steps

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS = ("perfetto", "csv", "parquet")


@click.command("export")
@trace_options
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@forward_options
@click.option(
    "--to",
    "targets",
    type=click.Choice(TARGETS),
    multiple=True,
    required=True,
    help="What other tool the files are for.",
)
@click.option("--force", is_flag=True, help="Overwrite files in DIR.")
def command(folder: Path, targets: tuple[str, ...], force: bool, **chosen: Any) -> None:
    """Write what a trace holds, with forwards, layers and the causes of holes, into DIR for other tools.

    perfetto: one file for https://ui.perfetto.dev and trace_processor; csv and parquet: one file per table, and a
    README that says what each column is.

    \b
    Examples:
      traceview export run.sqlite out --to perfetto
      traceview export run.sqlite out --to parquet
    """
    if len(targets) > 1:
        raise UsageError("--to is given more than once", "export once for each, into folders of their own")
    _check_folder(folder)
    with steps(6, chosen["path"]) as step:
        files = _files(targets[0], chosen, step)
        for name in files:
            if folder.is_dir():
                check_output(folder / name, force=force, inputs=[chosen["path"]])
        step("writing")
        write_folder(folder, files)


def _check_folder(folder: Path) -> None:
    """Raise before any work is done where the folder cannot be one."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is no directory", "name another one")
    if not folder.parent.is_dir():
        raise OutputError(f"{folder.parent} is no directory", f"make it first: mkdir -p {folder.parent}")


def _files(target: str, chosen: dict[str, Any], step: Callable[[str], None]) -> dict[str, bytes]:
    """Return the content of every file by its name."""
    from traceview.analysis.export_tables import export_tables
    from traceview.analysis.report import build_report
    from traceview.render.tables_export import as_csv, as_parquet

    step("reading")
    trace, options = read_trace(chosen), report_options(chosen)
    step("analysing")
    tables = export_tables(trace, options.forwards, build_report(trace, options))
    source = Path(chosen["path"])
    if target == "perfetto":
        from traceview.render.perfetto import as_perfetto

        return {f"{source.stem}.pftrace": as_perfetto(trace, tables, step)}
    return (as_csv if target == "csv" else as_parquet)(tables, source.name)
