"""``traceview diff``."""

from __future__ import annotations

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
from traceview.errors import InputError, UsageError
from traceview.output import print_page, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.compare import Comparison
    from traceview.analysis.compare_sides import Captured

PASS, REGRESSION, CANNOT_JUDGE = 0, 1, 3


class _Sides(click.Command):
    """A command whose ``--base`` and ``--new`` take all names up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each of its names, as click knows it."""
        return super().parse_args(ctx, _repeated(args, ("--base", "--new")))


@click.command("diff", cls=_Sides)
@click.argument("paths", metavar="[BASE NEW]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--base", "bases", multiple=True, type=click.Path(path_type=Path), metavar="TRACE…", help="Traces before."
)
@click.option("--new", "news", multiple=True, type=click.Path(path_type=Path), metavar="TRACE…", help="Traces after.")
@click.option(
    "--format", "style", type=click.Choice(["text", "markdown", "json", "html"]), default="text", show_default=True
)
@click.option("--only-changed", is_flag=True, help="Leave out what stayed the same.")
@click.option(
    "--fail-on", type=click.Choice(["regression"]), help="Exit 1 on a regression, 3 where that cannot be judged."
)
@threshold_option
@set_options
def command(
    paths: tuple[Path, ...],
    bases: tuple[Path, ...],
    news: tuple[Path, ...],
    style: str,
    only_changed: bool,
    **chosen: Any,
) -> int:
    """Compare traces before and after a change: what differs beyond chance, where, and which cause went or came.

    The measured forwards of each trace are the samples; several traces a side pool.

    \b
    Examples:
      traceview diff before.sqlite after.sqlite
      traceview diff before.sqlite after.sqlite --format markdown --only-changed
      traceview diff before.sqlite after.sqlite --format html > diff.html
      traceview diff --base a.sqlite b.sqlite c.sqlite --new d.sqlite e.sqlite f.sqlite
      traceview diff before.sqlite after.sqlite --fail-on regression --threshold makespan=min:5%
    """
    sides = _sides(paths, bases, news)
    for side in sides:
        refuse_repeats(side)
    fail_on, min_effects = chosen.pop("fail_on"), chosen.pop("min_effects")
    try:
        base, new = ([capture(path, chosen) for path in side] for side in sides)
    except InputError as error:
        if fail_on is None:
            raise
        click.echo(f"traceview: {error.message}: {error.hint}", err=True)
        return CANNOT_JUDGE
    comparison = compare_captures(base, new, smallest_effects(min_effects), chosen)
    if style == "html":
        print_page(_page(comparison, (base, new), only_changed, chosen))
    else:
        say(_written(comparison, style, only_changed))
    return PASS if fail_on is None else _status(comparison)


def _sides(
    paths: Sequence[Path], bases: Sequence[Path], news: Sequence[Path]
) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    if (bases or news) and paths:
        raise UsageError(f"{paths[0]} is on neither side", "put it behind --base or --new")
    if bases and news:
        return tuple(bases), tuple(news)
    if bases or news or len(paths) != 2:
        raise UsageError("a diff takes two sides", "traceview diff BASE NEW, or --base A B --new C D")
    return (paths[0],), (paths[1],)


def _page(
    comparison: Comparison,
    sides: tuple[Sequence[Captured], Sequence[Captured]],
    only_changed: bool,
    chosen: dict[str, Any],
) -> str:
    """Return a comparison as a page, with a forward of the first trace of each side on one time axis."""
    from traceview.analysis.drawings import median_timeline
    from traceview.commands.options import report_options
    from traceview.render.html_diff import render

    options = report_options(chosen | {"thresholds": ()}).forwards
    base, new = (median_timeline(side[0].trace, options, side[0].report) for side in sides)
    return render(comparison, base, new, only_changed=only_changed)


def _written(comparison: Comparison, style: str, only_changed: bool) -> str:
    if style == "json":
        from traceview.render.diff_json import render

        return render(comparison, only_changed=only_changed)
    from traceview.render.diff_layout import layout

    return draw(layout(comparison, only_changed=only_changed), style)


def _status(comparison: Comparison) -> int:
    from traceview.analysis.compare import CANNOT_TELL, REGRESSED

    return {REGRESSED: REGRESSION, CANNOT_TELL: CANNOT_JUDGE}.get(comparison.verdict, PASS)


def _repeated(args: list[str], options: tuple[str, ...]) -> list[str]:
    """Return arguments with ``--base a b`` written as ``--base a --base b``."""
    result: list[str] = []
    current: str | None = None
    for argument in args:
        if argument in options:
            current = argument
        elif argument.startswith("-") and argument != "-":
            current = None
            result.append(argument)
        elif current is not None:
            result += [current, argument]
        else:
            result.append(argument)
    return result
