"""``traceview diff``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceview.commands.trace_set import capture, compare_captures, draw, set_options
from traceview.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.compare import Comparison, Thresholds

PASS, REGRESSION, CANNOT_JUDGE = 0, 1, 3


class _Sides(click.Command):
    """A command whose ``--base`` and ``--new`` take all names up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before each of its names, as click knows it."""
        return super().parse_args(ctx, _repeated(args, ("--base", "--new")))


class MinEffect(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``measure=min:5%``; the measure may be left out for all."""

    name = "measure=min:5%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the measure's name (nothing for all) and the share."""
        if not isinstance(value, str):
            return value
        from traceview.analysis.compare_limits import measure_named, share_of

        measure, _, least = value.rpartition("=")
        try:
            return measure and measure_named(measure), share_of(least)
        except UsageError as error:
            self.fail(f"{error.message}: {error.hint}", param, ctx)


@click.command("diff", cls=_Sides)
@click.argument("paths", metavar="[BASE NEW]", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--base", "bases", multiple=True, type=click.Path(path_type=Path), metavar="TRACE…", help="Traces before."
)
@click.option("--new", "news", multiple=True, type=click.Path(path_type=Path), metavar="TRACE…", help="Traces after.")
@click.option("--format", "style", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.option("--only-changed", is_flag=True, help="Leave out what stayed the same.")
@click.option(
    "--fail-on", type=click.Choice(["regression"]), help="Exit 1 on a regression, 3 where that cannot be judged."
)
@click.option(
    "--threshold",
    "min_effects",
    type=MinEffect(),
    multiple=True,
    metavar="MEASURE=min:5%",
    help="Smallest difference that counts, of one measure or, without MEASURE=, of all; 2 % by default.",
)
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
      traceview diff --base a.sqlite b.sqlite c.sqlite --new d.sqlite e.sqlite f.sqlite
      traceview diff before.sqlite after.sqlite --fail-on regression --threshold makespan=min:5%
    """
    sides = _sides(paths, bases, news)
    fail_on, min_effects = chosen.pop("fail_on"), chosen.pop("min_effects")
    try:
        base, new = ([capture(path, chosen) for path in side] for side in sides)
    except InputError as error:
        if fail_on is None:
            raise
        click.echo(f"traceview: {error.message}: {error.hint}", err=True)
        return CANNOT_JUDGE
    comparison = compare_captures(base, new, _thresholds(min_effects), chosen)
    click.echo(_written(comparison, style, only_changed), nl=False)
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


def _thresholds(min_effects: Sequence[tuple[str, float]]) -> Thresholds:
    from traceview.analysis.compare import Thresholds

    by_measure = {measure: share for measure, share in min_effects if measure}
    everywhere = [share for measure, share in min_effects if not measure]
    return Thresholds(by_measure=by_measure, **({"default": everywhere[-1]} if everywhere else {}))


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
