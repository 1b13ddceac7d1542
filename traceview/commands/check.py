"""``traceview check``."""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.commands.trace_set import (
    capture,
    compare_captures,
    draw,
    refuse_repeats,
    set_options,
    smallest_effects,
    threshold_option,
)
from traceview.errors import InputError, OutputError, TraceviewError, UsageError
from traceview.output import check_output, say, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.budget import Checked
    from traceview.analysis.budget_file import Budget
    from traceview.analysis.compare import Thresholds
    from traceview.analysis.compare_sides import Captured

_FILE = click.Path(path_type=Path)
WRONG_USAGE = 2


@click.command("check")
@click.argument("paths", metavar="TRACE…", nargs=-1, required=True, type=_FILE)
@click.option("--budget", "budget_path", type=_FILE, metavar="FILE", help="Limits to keep to, as TOML.")
@click.option(
    "--baseline",
    "baselines",
    multiple=True,
    type=_FILE,
    metavar="BASE",
    help="A trace not to regress from; several pool, each behind a --baseline of its own.",
)
@click.option("--format", "style", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option("--junit", type=_FILE, metavar="FILE", help="Also write a JUnit report.")
@click.option("--sarif", type=_FILE, metavar="FILE", help="Also write SARIF 2.1.0 for code scanning.")
@click.option("--github", is_flag=True, help="Also write workflow annotations, and to $GITHUB_STEP_SUMMARY.")
@threshold_option
@set_options
def command(
    paths: tuple[Path, ...],
    budget_path: Path | None,
    baselines: tuple[Path, ...],
    style: str,
    **chosen: Any,
) -> int:
    """Fail when traces break a budget or regress from a baseline: for CI, on saved traces, without a GPU.

    Exits with 0 where all pass, 1 where something is broken or has regressed, 2 on wrong usage, 3 where it cannot be
    judged: an unreadable trace, missing data, too few samples.

    \b
    Examples:
      traceview check run.sqlite
      traceview check traces/*.sqlite --budget budget.toml --junit check.xml --github
      traceview check run.sqlite --baseline good.sqlite
    """
    from traceview.analysis.budget import EXIT_CODES, worst
    from traceview.analysis.budget_file import read_budget

    junit, sarif, github = (chosen.pop(name) for name in ("junit", "sarif", "github"))
    thresholds = smallest_effects(chosen.pop("min_effects"))
    inputs = [*paths, *baselines, *([budget_path] if budget_path else [])]
    _check_outputs(junit, sarif, inputs)
    refuse_repeats(baselines)
    budget = read_budget(budget_path) if budget_path is not None else None
    checked = _check(paths, budget, baselines, thresholds, chosen)
    unmatched = budget.unmatched(paths) if budget else ()
    status = EXIT_CODES[worst(one.verdict for one in checked)]
    try:
        _write_reports(checked, junit, sarif)
        say(_written(checked, style, unmatched))
    except OutputError as error:
        # the verdict stands; only where it is a pass must what is missing be noticed
        click.echo(f"traceview: {error.message}: {error.hint}", err=True)
        status = status or WRONG_USAGE
    if github:
        _tell_github(checked, unmatched)
    return status


def _check_outputs(junit: Path | None, sarif: Path | None, inputs: Sequence[Path]) -> None:
    """Refuse before any work what cannot be written: wrong usage here, where 1 stands for a broken rule."""
    if junit is not None and sarif is not None and junit.resolve() == sarif.resolve():
        raise UsageError(f"{junit} is to hold both reports", "name another file with --sarif")
    try:
        for option, output in (("--junit", junit), ("--sarif", sarif)):
            if output is not None:
                check_output(output, force=True, inputs=inputs, option=option)
    except OutputError as error:
        raise UsageError(error.message, error.hint) from None


def _check(
    paths: Sequence[Path],
    budget: Budget | None,
    baselines: Sequence[Path],
    thresholds: Thresholds,
    chosen: dict[str, Any],
) -> list[Checked]:
    """Hold each trace against the budget and the baseline; one that cannot be read does not stop the others."""
    from traceview.analysis.budget import unreadable

    given = [word for word, there in (("budget", budget), ("baseline", baselines)) if there]
    basis = " and ".join(given) or "findings"
    try:
        base = [capture(path, chosen) for path in baselines]
    except InputError as error:
        return [unreadable(str(path), f"the baseline: {error.message}: {error.hint}", basis) for path in paths]
    return [_check_one(path, (budget, base, basis), thresholds, chosen) for path in paths]


def _check_one(
    path: Path,
    against: tuple[Budget | None, Sequence[Captured], str],
    thresholds: Thresholds,
    chosen: dict[str, Any],
) -> Checked:
    """Hold one trace against what was given; a defect of traceview's own is no regression of the trace either."""
    from traceview.analysis.budget import unreadable

    try:
        return _judged(path, capture(path, chosen), against, thresholds, chosen)
    except InputError as error:
        return unreadable(str(path), f"{error.message}: {error.hint}", against[-1])
    except TraceviewError:
        raise
    except Exception as error:
        traceback.print_exc()
        told = f"{path} makes traceview fail ({type(error).__name__}): report it with the lines on standard error"
        return unreadable(str(path), told, against[-1])


def _judged(
    path: Path,
    captured: Captured,
    against: tuple[Budget | None, Sequence[Captured], str],
    thresholds: Thresholds,
    chosen: dict[str, Any],
) -> Checked:
    from traceview.analysis.budget import Checked, causes, judge, judge_comparison
    from traceview.analysis.budget_file import DEFAULT_RULES, Rules
    from traceview.render.diff_headline import sentence, summary

    budget, base, basis = against
    rules = budget.for_path(path) if budget else Rules() if base else DEFAULT_RULES
    if budget and not base and not rules.limits and not rules.findings:
        raise UsageError(f"no limit of the budget is meant for {path}", 'give it a [limits], or [files."*"]')
    outcomes = judge(captured.report, rules)
    comparison = None
    if base:
        comparison = compare_captures(base, [captured], thresholds, chosen)
        outcomes = (*outcomes, *judge_comparison(comparison, summary(comparison), sentence))
    return Checked(
        str(path), basis, outcomes, comparison, causes(captured.report, outcomes, None if budget else comparison)
    )


def _written(checked: Sequence[Checked], style: str, unmatched: Sequence[str] = ()) -> str:
    if style == "json":
        from traceview.render.check_json import render

        return render(checked, unmatched)
    from traceview.render.check_layout import layout, unreadable_line

    alone = unreadable_line(checked)
    return f"{alone}\n" if alone and style == "text" else draw(layout(checked, unmatched), style)


def _write_reports(checked: Sequence[Checked], junit: Path | None, sarif: Path | None) -> None:
    if junit is not None:
        from traceview.render.junit import render as render_junit

        write_whole(junit, render_junit(checked))
    if sarif is not None:
        from traceview.render.sarif import render as render_sarif

        write_whole(sarif, render_sarif(checked, _repository()))


def _repository() -> Path:
    """Return the folder that reports name files from: the workflow's checkout where this runs in it, else this one."""
    here, workspace = Path.cwd(), os.environ.get("GITHUB_WORKSPACE")
    inside = workspace and here.is_relative_to(Path(workspace).resolve())
    return Path(workspace) if workspace and inside else here


def _tell_github(checked: Sequence[Checked], unmatched: Sequence[str]) -> None:
    """Write annotations to standard error, so that JSON stays whole, and Markdown to the job's summary."""
    from traceview.render.github import render

    click.echo(render(checked, _repository()), nl=False, err=True)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(_written(checked, "markdown", unmatched) + "\n")
    except OSError as error:
        click.echo(f"traceview: no summary, {summary} cannot be written: {error.strerror}", err=True)
