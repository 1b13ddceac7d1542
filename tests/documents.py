"""What README.md and MEASURES.md show of commands and samples: the words that the blocks use which cog runs in them.

``python tests/documents.py`` tells whether both show what is true now; with ``--write`` it makes them.
"""

from __future__ import annotations

import sys
import textwrap
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import checkout  # noqa: F401
import click
from cogapp import Cog

import traceview
from instrument import cli as instrument_cli
from traceview import cli
from traceview.analysis.report import ReportOptions, build_report
from traceview.render import RENDERERS
from traceview.units import duration, percent, rate, size

if TYPE_CHECKING:
    from traceview.model import Trace
    from traceview.report import CopyGroup, Finding, Forward, Measures, Report, Sync
    from traceview.report_links import Lane

__all__ = [
    "ROOT",
    "beside",
    "commands",
    "copies",
    "duration",
    "excerpt",
    "finding",
    "middle",
    "percent",
    "rate",
    "sample",
    "say",
    "size",
    "summary",
    "syncs",
    "trace",
    "what_if",
]

ROOT = Path(__file__).parents[1]
DOCUMENTS = (ROOT / "README.md", ROOT / "MEASURES.md")
COLUMNS = 80
WIDTH = 120


@cache
def trace(name: str, metrics: bool = False) -> Trace:
    """Read a sample."""
    return traceview.read(ROOT / "sample_traces" / f"{name}.sqlite", metrics=metrics)


@cache
def sample(name: str, *edits: str, metrics: bool = False) -> Report:
    """Report on a sample, with what-if edits where some are named."""
    return build_report(trace(name, metrics), ReportOptions(what_if=edits))


def summary(name: str) -> Measures:
    """Return the medians of a sample."""
    of = sample(name).summary
    assert of is not None
    return of.measures


def middle(name: str) -> Forward:
    """Return the measured forward of a sample that has the median makespan (of an even number, the shorter)."""
    measured = sorted(
        (one for one in sample(name).forwards if not one.warmup), key=lambda one: one.measures.makespan_ns
    )
    return measured[(len(measured) - 1) // 2]


def finding(name: str, cause: str) -> Finding:
    """Return one finding of a sample."""
    return next(one for one in sample(name).findings if one.id == cause)


def syncs(name: str, **wanted: Any) -> list[Sync]:
    """Return the blocking calls of a sample's median forward that have the given values."""
    inside = [one for one in sample(name).syncs if one.forward == middle(name).index]
    return [one for one in inside if all(getattr(one, key) == value for key, value in wanted.items())]


def copies(name: str, direction: str = "h2d") -> CopyGroup:
    """Return the group with most pieces of a sample's copies in one direction."""
    return max((one for one in sample(name).copies if one.direction == direction), key=lambda one: one.pieces)


def beside(name: str, one: str, other: str | None = None) -> Lane:
    """Return the lane of a class of transfers, by itself or beside another."""
    return next(lane for lane in sample(name).lanes if (lane.transfer_class, lane.beside) == (one, other))


def what_if(name: str, *edits: str) -> int:
    """Return what a sample's forward would take with some edits, ns."""
    (predicted,) = (one for one in sample(name, *edits).what_if if one.edits == edits)
    assert predicted.predicted_ns is not None
    return predicted.predicted_ns


def say(text: str) -> None:
    """Write an example as a quotation."""
    import cog

    cog.outl(textwrap.fill(" ".join(text.split()), WIDTH, initial_indent="> ", subsequent_indent="> "))


def excerpt(name: str, end: str) -> None:
    """Write the beginning of a sample's report, up to a heading, as the terminal shows it."""
    import cog

    shown = RENDERERS["text"](sample(name), colour=False, width=100, ascii_only=False)
    cog.outl(f"```console\n$ traceview report sample_traces/{name}.sqlite\n{shown.partition(end)[0].rstrip()}\n…\n```")


def commands() -> None:
    """Write the help of every command, each folded away under its name."""
    import cog

    for group, program, names in (
        (cli.main, "traceview", tuple(cli.COMMANDS)),
        (instrument_cli.cli, "python -m instrument", ("run", "capture", "attach")),
    ):
        top = click.Context(group, info_name=program, terminal_width=COLUMNS, **group.context_settings)
        for name in names:
            command = group.get_command(top, name)
            assert command is not None
            told = command.get_help(click.Context(command, info_name=name, parent=top))
            title = f"<code>{program} {name}</code>"
            cog.outl(f"<details><summary>{title}</summary>\n\n```text\n{told}\n```\n\n</details>\n")


def run_cog(document: Path, *, write: bool) -> bool:
    """Return whether a document showed what is true; with ``write`` it does afterwards."""
    before = document.read_text(encoding="utf-8")
    how = ["-r"] if write else ["--check", "--diff"]
    status = Cog().main(["cog", "-I", str(Path(__file__).parent), "-p", "from documents import *", *how, str(document)])
    if status not in (0, 5):  # 5: not up to date
        raise SystemExit(status)
    return status == 0 and document.read_text(encoding="utf-8") == before


if __name__ == "__main__":
    stale = [path.name for path in DOCUMENTS if not run_cog(path, write="--write" in sys.argv)]
    if stale and "--write" not in sys.argv:
        sys.exit(f"{', '.join(stale)} shows what is no longer true: python tests/documents.py --write")
