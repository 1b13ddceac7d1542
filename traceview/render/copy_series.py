"""Copies by size as series to be drawn: pieces by power of two, and rates with their fitted lines and ceilings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.render.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.analysis.copy_rates import CopyRates
    from traceview.analysis.links import Ceiling
    from traceview.report import CopyGroup, Report

GROUPS_SHOWN = 6
_FIT_POINTS = 40
_OVER_THE_LINK = ("h2d", "d2h")


def sizes(report: Report) -> dict[str, Any]:
    """Return pieces by power of two for the groups of copies with most bytes; the rest is one group."""
    groups = _most_bytes_first(report)
    powers = _powers({int(power) for group in groups for power in group.histogram})
    series = [(_title(group.direction, group.memory, group.stream), [group]) for group in groups[:GROUPS_SHOWN]]
    if groups[GROUPS_SHOWN:]:
        series.append((f"{len(groups) - GROUPS_SHOWN} other groups", groups[GROUPS_SHOWN:]))
    return {
        "powers": powers,
        "series": [{"label": label, "pieces": _pieces(members, powers)} for label, members in series],
    }


def _most_bytes_first(report: Report) -> list[CopyGroup]:
    return sorted(report.copies, key=lambda group: -group.n_bytes)


def _powers(present: set[int]) -> list[int]:
    """Return every power of two from the smallest to the largest, so that distances on an axis are true."""
    powers = [min(present, default=0)]
    while powers[-1] < max(present, default=0):
        powers.append(max(1, powers[-1] * 2))
    return powers


def rates(found: Sequence[CopyRates], report: Report, ceilings: Iterable[Ceiling]) -> dict[str, Any]:
    """Return the rate per copy size of the groups with most bytes, each with its fitted line, and the ceilings.

    Where copies cross the link the others, which are many times faster, would press them to the floor: ``left_out``
    says how many groups those are. ``colour`` is the place of a group among those of ``sizes``.
    """
    groups = [_title(group.direction, group.memory, group.stream) for group in _most_bytes_first(report)]
    colours = {title: min(place, GROUPS_SHOWN) for place, title in enumerate(groups)}
    over_link = [group for group in found if group.direction in _OVER_THE_LINK]
    drawn = (over_link or list(found))[:GROUPS_SHOWN]
    series = []
    for group in drawn:
        title = _title(group.direction, group.memory, group.stream)
        points = [[size.n_bytes, size.median, size.low, size.high, size.count] for size in group.sizes]
        fitted = _fit_of(report.copies, group)
        ends = (group.sizes[0].n_bytes, group.sizes[-1].n_bytes)
        series.append(
            {
                "label": title,
                "colour": colours.get(title, GROUPS_SHOWN),
                "points": points,
                "fit": _fit_line(fitted, ends) if fitted else None,
                "fitted": f"{fitted[0]:.0f} ns + bytes at {fitted[1]:.1f} GB/s" if fitted else None,
            }
        )
    shown_devices = {group.device for group in drawn if group.direction in _OVER_THE_LINK}
    lines = [
        {"label": f"GPU {one.device}: {one.source}", "rate": one.rate}
        for one in ceilings
        if one.device in shown_devices
    ]
    return {"series": series, "ceilings": lines, "left_out": len(found) - len(over_link) if over_link else 0}


def _fit_of(groups: Iterable[CopyGroup], wanted: CopyRates) -> tuple[float, float] | None:
    for group in groups:
        if (group.stream, group.direction, group.memory) == (wanted.stream, wanted.direction, wanted.memory):
            fit = group.fit
            return (fit.piece_cost_ns, fit.rate) if fit.piece_cost_ns is not None and fit.rate is not None else None
    return None


def _fit_line(fit: tuple[float, float], ends: tuple[int, int]) -> list[list[float]]:
    """Return points of bytes / (a + bytes / b) between two sizes, evenly apart on a logarithmic axis."""
    n_bytes = np.geomspace(max(1, ends[0]), max(1, ends[1]), _FIT_POINTS)
    return np.stack((n_bytes, n_bytes / (fit[0] + n_bytes / fit[1])), axis=1).tolist()  # type: ignore[no-any-return]


def _title(direction: str, memory: str, stream: str) -> str:
    return f"{direction} {memory}, {shown(stream, 30)}"


def _pieces(members: Iterable[CopyGroup], powers: Sequence[int]) -> list[int]:
    return [sum(group.histogram.get(str(power), 0) for group in members) for power in powers]
