"""``traceview budget``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from traceview.commands.trace_set import capture, set_options
from traceview.errors import UsageError
from traceview.output import check_output, write_whole


class Percent(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``10%`` as the share 0.1."""

    name = "10%"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the share."""
        if not isinstance(value, str):
            return value
        try:
            share = float(value.removesuffix("%")) / 100
        except ValueError:
            share = -1.0
        if not value.endswith("%") or not 0 <= share < 1:
            self.fail(f"{value!r} is no percentage below 100 such as 10%", param, ctx)
        return share


@click.command("budget")
@click.argument("path", metavar="TRACE", type=click.Path(path_type=Path))
@click.option("--slack", type=Percent(), default="10%", show_default=True, help="How much worse may pass.")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to FILE.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
@set_options
def command(path: Path, slack: float, output: Path | None, force: bool, **chosen: Any) -> None:
    """Write a budget from a good run: its measures with some slack, for `traceview check --budget`.

    \b
    Example:
      traceview budget good.sqlite --slack 10% -o budget.toml
    """
    from traceview.analysis.budget_draft import draft_budget

    if output is not None:
        check_output(output, force=force, inputs=[path])
    captured = capture(path, chosen)
    if not captured.has_forwards:
        raise UsageError(f"{path} has no measured forward to take a budget from", f"see: traceview report {path}")
    text = draft_budget(captured.report, slack)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_whole(output, text.encode())
