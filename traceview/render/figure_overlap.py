"""How much of each class of work runs beside each other one, as a matrix of shares for each device."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_hex

from traceview.errors import SelectionError
from traceview.render.figure import INK, MUTED, WIDTH_PX, drawable, drawing, new_sheet, written
from traceview.render.layout_overlap import CLASSES
from traceview.render.palette import text_on
from traceview.units import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from traceview.report import Overlap, Report

DEVICES_SHOWN = 2
STREAMS_SHOWN = 7
_LABEL = 9
"""characters that fit above a cell"""
_DARKEST = 1.15
"""The share at the dark end of the colours, so that 1 is not black."""

_PANEL_PX, _ABOVE_PX, _SIDE_PX, _TITLE_PX = 400, 66, 130, 34


def draw_overlap(report: Report, style: str) -> bytes:
    """Return, as a file of the given style, matrices of the classes of work and of the busiest streams of each device.

    A cell is the share of the shorter one of two that runs beside the other, over the whole trace. Raises
    ``SelectionError`` where nothing ran beside anything.
    """
    whole = [pair for pair in report.overlap if pair.scope == "trace"]
    there = list(dict.fromkeys((pair.process, pair.device) for pair in whole))
    places = there[:DEVICES_SHOWN]
    if not places:
        raise SelectionError("no two streams or classes of work ran on one device", "see: traceview doctor TRACE")
    height = _ABOVE_PX + len(places) * (_PANEL_PX + _TITLE_PX)
    with drawing():
        sheet = new_sheet(height)
        left = 22 / WIDTH_PX
        title = "Share of the shorter one that runs beside the other"
        sheet.text(left, 1 - 20 / height, title, fontsize=11, va="center", weight="bold")
        about = f"{drawable(PurePath(report.trace.path).name, 50)}, whole trace; below the share, ms in which both ran"
        if there[DEVICES_SHOWN:]:
            about += f"; the first {DEVICES_SHOWN} of {len(there)} pairs of process and GPU"
        sheet.text(left, 1 - 40 / height, about, color=MUTED, va="center")
        for number, (process, device) in enumerate(places):
            here = [pair for pair in whole if (pair.process, pair.device) == (process, device)]
            classes = [pair for pair in here if pair.a in CLASSES]
            streams = [pair for pair in here if pair.a not in CLASSES]
            top = height - _ABOVE_PX - number * (_PANEL_PX + _TITLE_PX)
            words = (f"GPU {device}, process {process}: classes", "its busiest streams, by number")
            for column, pairs in enumerate((classes, streams)):
                if pairs:
                    x = _SIDE_PX + column * WIDTH_PX / 2
                    size = (WIDTH_PX / 2 - _SIDE_PX - 24, _PANEL_PX - 60)
                    corner = (x / WIDTH_PX, (top - _PANEL_PX + 12) / height)
                    axes = sheet.add_axes((*corner, size[0] / WIDTH_PX, size[1] / height))
                    _matrix(axes, pairs, words[column], f"{process}/{device}/")
        return written(sheet, style)


def _matrix(axes: Axes, pairs: Sequence[Overlap], words: str, prefix: str) -> None:
    """Draw one matrix; labels lack the ``prefix`` that all its streams share, so that long ones do not touch."""
    names = _names(pairs)
    at = {name: index for index, name in enumerate(names)}
    colours = colormaps["Blues"]
    shares = np.full((len(names), len(names)), np.nan)
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    for pair in pairs:
        if pair.a not in at or pair.b not in at:
            continue
        for row, column in ((at[pair.a], at[pair.b]), (at[pair.b], at[pair.a])):
            shares[row, column] = pair.ratio
            ink = text_on(to_hex(colours(pair.ratio / _DARKEST)))
            axes.text(column, row - 0.1, percent(pair.ratio), ha="center", va="center", color=ink)
            axes.text(
                column, row + 0.22, milliseconds(pair.overlap_ns), ha="center", va="center", color=ink, fontsize=7
            )
    end = len(names) - 0.5
    axes.imshow(shares, cmap=colours, vmin=0, vmax=_DARKEST, aspect="auto", extent=(-0.5, end, end, -0.5))
    labels = [drawable(name.removeprefix(prefix), _LABEL) for name in names]
    axes.set_xticks(range(len(names)), labels, color=INK)
    axes.set_yticks(range(len(names)), labels, color=INK)
    axes.tick_params(length=0, labelbottom=False, labeltop=True)
    axes.set_title(words, fontsize=9, color=MUTED, pad=8)
    axes.spines[:].set_visible(False)


def _names(pairs: Sequence[Overlap]) -> list[str]:
    """Return the classes in their order, or the busiest streams."""
    busy: dict[str, int] = {}
    for pair in pairs:
        busy[pair.a], busy[pair.b] = pair.busy_a_ns, pair.busy_b_ns
    if all(name in CLASSES for name in busy):
        return [name for name in CLASSES if name in busy]
    busiest = sorted(busy, key=lambda name: (-busy[name], name))[:STREAMS_SHOWN]
    return sorted(busiest)
