"""``traceview fleet``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.commands.trace_set import capture, draw, set_options
from traceview.errors import UsageError
from traceview.output import print_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traceview.analysis.fleet import Fleet, Rank
    from traceview.workers import Outcome

ANSWERED, NOTHING_READ = 0, 1
_EXPORTS, _REPORTS = (".sqlite",), (".nsys-rep", ".qdrep")


@click.command("fleet")
@click.argument("names", metavar="DIR|GLOB|TRACE…", nargs=-1, required=True, type=click.Path())
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Files read at a time; as many as there are cores.")
@click.option("--dask", "scheduler", metavar="SCHEDULER", help="Run on this Dask cluster, as tcp://host:8786.")
@click.option(
    "--format", "style", type=click.Choice(["text", "markdown", "json", "html"]), default="text", show_default=True
)
@set_options
def command(names: tuple[str, ...], jobs: int | None, scheduler: str | None, style: str, **chosen: Any) -> int:
    """Compare the ranks of one run: one row per rank, who comes late, and what makes them late.

    A rank is a process on a device with forwards. Of a folder the exports in it are read, and reports that have none
    beside them. A file that cannot be read is a row with its error.

    \b
    Examples:
      traceview fleet traces/
      traceview fleet 'traces/rank*.sqlite' --jobs 4 --format json
      traceview fleet traces/ --dask tcp://10.0.0.1:8786
    """
    from traceview.analysis.fleet import compare_ranks

    paths = find_traces(names)
    ranks = [rank for outcome in _outcomes(paths, jobs, scheduler, chosen) for rank in _rows(outcome)]
    fleet = compare_ranks(ranks)
    if style == "html":
        print_page(_drawn(fleet, style))
    else:
        click.echo(_drawn(fleet, style), nl=False)
    return NOTHING_READ if all(rank.error for rank in fleet.ranks) else ANSWERED


def find_traces(names: Iterable[str]) -> list[Path]:
    """Return the traces that folders, patterns and names stand for, each once, in order.

    A report is left out where its export lies beside it. Raises ``UsageError`` for a name that stands for none.
    """
    found: dict[Path, None] = {}
    for name in names:
        here = _matching(name)
        if not here:
            raise UsageError(f"{name} holds no trace", "name a folder with .sqlite or .nsys-rep files, or the files")
        found.update(dict.fromkeys(here))
    return list(found)


def measure_file(path: Path, chosen: dict[str, Any]) -> tuple[Rank, ...]:
    """Return the ranks in one file; runs in a process of its own, on this machine or another."""
    from traceview.analysis.fleet import ranks_of

    captured = capture(path, chosen)
    return ranks_of(path, captured.report, captured.trace.capture)


def _matching(name: str) -> list[Path]:
    path = Path(name)
    if path.is_file():
        return [path]
    root = Path(path.anchor)
    candidates = sorted(path.iterdir() if path.is_dir() else root.glob(str(path.relative_to(root))))
    exports = {one.with_suffix("") for one in candidates if one.suffix in _EXPORTS}
    return [
        one
        for one in candidates
        if one.suffix in _EXPORTS or (one.suffix in _REPORTS and one.with_suffix("") not in exports)
    ]


def _outcomes(
    paths: Sequence[Path], jobs: int | None, scheduler: str | None, chosen: dict[str, Any]
) -> Iterator[Outcome[Path, tuple[Rank, ...]]]:
    from traceview.workers import available_cores, run_here, run_on_dask

    task = partial(measure_file, chosen=chosen)
    if scheduler is not None:
        if jobs is not None:
            raise UsageError("--jobs does not go with --dask", "the cluster has as many workers as it has")
        return run_on_dask(task, [path.resolve() for path in paths], scheduler)
    return run_here(task, paths, min(jobs or available_cores(), len(paths)))


def _rows(outcome: Outcome[Path, tuple[Rank, ...]]) -> tuple[Rank, ...]:
    from traceview.analysis.fleet import failed_rank

    if outcome.result is not None:
        return outcome.result
    return (failed_rank(outcome.item, (outcome.error or "no result").replace(str(outcome.item), outcome.item.name)),)


def _drawn(fleet: Fleet, style: str) -> str:
    if style == "json":
        from traceview.render.fleet_json import render

        return render(fleet)
    from traceview.render.fleet_layout import layout

    if style == "html":
        from traceview.render.html import contents, header
        from traceview.render.html_blocks import section
        from traceview.render.html_document import document

        page = layout(fleet)
        body = [section(one) for one in page.sections]
        return document("Ranks · traceview", (header(page), contents(body), "<main>", *body, "</main>"), {})
    return draw(layout(fleet), style)
