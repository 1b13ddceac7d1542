"""``traceview save``."""

from __future__ import annotations

import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click

from traceview.commands.trace_set import capture, set_options
from traceview.errors import UsageError
from traceview.output import check_output
from traceview.render.shown import shown
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
    from traceview.analysis.compare_clocks import paces_of
    from traceview.history import content_hash, open_history, save_report
    from traceview.history_tables import Origin

    check_output(database, force=True, inputs=[path], option="--to")
    if commit and (not commit.isprintable() or commit.startswith("-") or commit != "".join(commit.split())):
        raise UsageError(f"--commit {commit!r} is no name of a commit", "write it as --commit 1f3c9d2")
    captured = capture(path, chosen)
    report = captured.report
    origin = Origin(
        trace_sha256=content_hash(path),
        commit=(_git("rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") or commit)
        if commit
        else _git("rev-parse", "--verify", "HEAD"),
        label=label or path.stem,
        saved_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
    )
    with open_history(database, create=True) as connection:
        replaced = save_report(connection, report, origin, paces_of([(captured.trace, report.forwards)]))
    measured = sum(not forward.warmup for forward in report.forwards)
    done = "Replaced" if replaced else "Saved"
    of_commit = f", commit {origin.commit[:12]}" if origin.commit else ", without a commit"
    forwards = counted(measured, "measured forward")
    names = shown(path.name, 60), shown(str(database), 200), shown(origin.label, 60)
    click.echo(f"{done} {forwards} of {names[0]} in {names[1]} as {names[2]}{of_commit}.")


def _git(*arguments: str) -> str | None:
    """Return what git prints about the repository of the current folder, or None where it has no answer."""
    try:
        done = subprocess.run(
            ["git", *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
