"""``traceview save``."""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from traceview.commands.trace_set import capture, set_options
from traceview.output import check_output
from traceview.units import counted

_GIT_SECONDS = 10


@click.command("save")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--to", "database", type=click.Path(path_type=Path), required=True, metavar="RUNS.DB", help="Where to.")
@click.option("--label", metavar="TEXT", help="What the run is; else the trace's name.")
@click.option("--commit", metavar="SHA", help="The commit that was run; else the one checked out here, if any.")
@set_options
def command(path: Path, database: Path, label: str | None, commit: str | None, **chosen: Any) -> None:
    """Save a trace's results to an SQLite file, a row per forward and measure, for `traceview history`.

    \b
    Examples:
      traceview save run.sqlite --to runs.db --label nightly
      traceview save run.sqlite --to runs.db --label nightly --commit 1f3c9d2
    """
    from traceview.history import Origin, content_hash, open_history, save_report

    check_output(database, force=True, inputs=[path])
    report = capture(path, chosen).report
    origin = Origin(
        trace_sha256=content_hash(path),
        commit=commit or _checked_out(),
        label=path.stem if label is None else label,
        saved_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    with open_history(database, create=True) as connection:
        replaced = save_report(connection, report, origin)
    measured = sum(not forward.warmup for forward in report.forwards)
    done = "Replaced" if replaced else "Saved"
    of_commit = f", commit {origin.commit[:12]}" if origin.commit else ", without a commit"
    click.echo(
        f"{done} {counted(measured, 'measured forward')} of {path.name} in {database} as {origin.label}{of_commit}."
    )


def _checked_out() -> str | None:
    """Return the commit checked out in the current folder, or None where there is none."""
    try:
        done = subprocess.run(
            ["git", "rev-parse", "--verify", "HEAD"],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
