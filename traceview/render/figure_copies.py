"""Copies by size: how many pieces there are, and how fast a copy of each size is, with fitted line and ceiling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator

from traceview.errors import SelectionError
from traceview.render.copy_series import rates, sizes
from traceview.render.figure import INK, LINE, MUTED, WIDTH_PX, drawable, drawing, new_sheet, written
from traceview.render.figure_legend import legend_height, place_legend
from traceview.render.palette import SERIES_COLOURS
from traceview.units import count, rate, size

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from traceview.analysis.drawings import Drawings
    from traceview.report import Report

_HEIGHT_PX, _ABOVE_PX, _AXIS_PX = 330, 84, 50
_LEFT_PX, _RIGHT_PX = 76, 36
_SIZES_LABELLED = 7


def draw_copies(report: Report, drawings: Drawings, style: str) -> bytes:
    """Return, as a file of the given style, the pieces by size and the rate by size of the groups with most bytes.

    Raises ``SelectionError`` where the trace holds no copy.
    """
    if not report.copies:
        raise SelectionError("this trace holds no copies", "see: traceview doctor TRACE")
    pieces = sizes(report)
    fast = rates(drawings.rates, report, drawings.ceilings)
    legend = [(SERIES_COLOURS[index], drawable(one["label"], 50)) for index, one in enumerate(pieces["series"])]
    below = _AXIS_PX + legend_height(legend, _LEFT_PX)
    height = _ABOVE_PX + _HEIGHT_PX + below
    with drawing():
        sheet = new_sheet(height)
        left = 22 / WIDTH_PX
        sheet.text(left, 1 - 20 / height, "Copies by size", fontsize=11, va="center", weight="bold")
        about = "; ".join(f"ceiling {rate(one['rate'])}: {one['label']}" for one in fast["ceilings"])
        sheet.text(left, 1 - 40 / height, drawable(about, 160) if about else "whole trace", color=MUTED, va="center")
        width, tall = (WIDTH_PX / 2 - _LEFT_PX - _RIGHT_PX) / WIDTH_PX, _HEIGHT_PX / height
        _pieces(sheet.add_axes((_LEFT_PX / WIDTH_PX, below / height, width, tall)), pieces)
        _rates(sheet.add_axes((0.5 + _LEFT_PX / WIDTH_PX, below / height, width, tall)), fast)
        place_legend(sheet, legend, _LEFT_PX)
        return written(sheet, style)


def _pieces(axes: Axes, pieces: dict[str, Any]) -> None:
    powers, series = pieces["powers"], pieces["series"]
    wide = 0.8 / len(series)
    for index, one in enumerate(series):
        at = [position - 0.4 + (index + 0.5) * wide for position in range(len(powers))]
        axes.bar(at, one["pieces"], width=wide * 0.92, color=SERIES_COLOURS[index])
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.5)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(round(value)) if value >= 1 else ""))
    axes.yaxis.set_minor_locator(NullLocator())
    every = -(-len(powers) // _SIZES_LABELLED)
    axes.set_xticks(range(0, len(powers), every), [size(power) for power in powers[::every]])
    axes.set_xlim(-0.6, len(powers) - 0.4)
    axes.set_xlabel("from size")
    axes.set_title("pieces", fontsize=9, color=MUTED)
    axes.grid(axis="y")
    axes.tick_params(color=LINE)


def _rates(axes: Axes, fast: dict[str, Any]) -> None:
    ends: list[float] = []
    for one in fast["series"]:
        colour = SERIES_COLOURS[one["colour"]]
        points = np.array(one["points"], dtype=float)
        ends += [points[0, 0], points[-1, 0]]
        axes.vlines(points[:, 0], points[:, 2], points[:, 3], color=colour, alpha=0.35, linewidth=1)
        axes.plot(points[:, 0], points[:, 1], "o", color=colour, markersize=4)
        if one["fit"]:
            axes.plot(*np.array(one["fit"]).T, color=colour, linewidth=1.2)
    for one in fast["ceilings"]:
        axes.axhline(one["rate"], color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xscale("log", base=2)
    if ends:
        axes.set_xlim(min(ends) / 2, max(ends) * 2)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=_SIZES_LABELLED))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    highest = [one["rate"] for one in fast["ceilings"]] + [
        point[3] for one in fast["series"] for point in one["points"]
    ]
    axes.set_ylim(0, 1.08 * max(highest, default=1))
    axes.set_xlabel("size")
    over_link = " over the link" if fast["left_out"] else ""
    words = f"GB/s{over_link}, median with smallest and largest; line: fit, dashed: ceiling"
    axes.set_title(words, fontsize=9, color=MUTED)
    axes.grid()
    axes.tick_params(color=LINE)
