"""What the shell offers for values of options; imported with the command, so that analyses are imported only on Tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click


def _starting(names: Iterable[str], begun: str, before: str = "", after: str = "") -> list[str]:
    return [f"{before}{name}{after}" for name in names if name.startswith(begun)]


def complete_edits(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Offer the edits of ``--what-if`` that are not yet in the list that was begun."""
    from traceview.analysis.whatif import EDITS

    before, comma, last = begun.rpartition(",")
    return _starting((name for name in EDITS if name not in before.split(",")), last, before + comma)


def complete_thresholds(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Offer the names of the thresholds of findings, up to the number."""
    from dataclasses import fields

    from traceview.analysis.case import Thresholds

    return _starting((field.name for field in fields(Thresholds)), begun, after="=")


def complete_effects(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Offer the measures that can change between traces, up to the share."""
    from traceview.analysis.compare_measures import MEASURES

    return _starting(MEASURES, begun, after="=min:")


def complete_measures(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """Offer the measures that runs are saved with."""
    from traceview.analysis.compare_measures import MEASURES

    return _starting(MEASURES, begun)
