"""Forwards as stacked bars of what their time went to, with the ideal beside each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.errors import SelectionError
from traceview.render.figure import (
    INK,
    LINE,
    MUTED,
    WIDTH_PX,
    drawable,
    drawing,
    new_sheet,
    pixels_per_unit,
    text_width,
    written,
)
from traceview.render.figure_legend import legend_height, place_legend
from traceview.render.palette import CATEGORY_COLOURS, text_on
from traceview.render.verdict import measured_forwards
from traceview.report import CATEGORIES
from traceview.units import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from traceview.report import Forward, Report

FORWARDS_SHOWN = 24

_ROW_PX, _ABOVE_PX, _AXIS_PX = 46, 62, 48
_LEFT_PX, _BESIDE_PX, _EDGE_PX = 172, 9, 22
_TAKEN, _IDEAL = 0.5, 0.16
_TEXT = 8.0


def draw_accounting(report: Report, style: str) -> bytes:
    """Return the picture of the measured forwards' accounting, as a file of the given style; ideal is a thin bar.

    Of more than ``FORWARDS_SHOWN`` forwards those with the longest makespans are drawn, and the picture says so. Raises
    ``SelectionError`` where none was measured.
    """
    measured = measured_forwards(report)
    if not measured:
        raise SelectionError("no forward was measured, so none has an accounting", "see: traceview doctor TRACE")
    longest = sorted(measured, key=lambda forward: -forward.measures.makespan_ns)[:FORWARDS_SHOWN]
    shown = [forward for forward in measured if forward in longest]
    present = [name for name in CATEGORIES if any(forward.measures.accounting[name] for forward in shown)]
    legend = [(CATEGORY_COLOURS[name], name) for name in present]
    if any(forward.measures.ideal_ns is not None for forward in shown):
        legend.append((MUTED, "ideal"))
    below = _AXIS_PX + legend_height(legend, _LEFT_PX)
    height = _ABOVE_PX + _ROW_PX * len(shown) + below
    right = _BESIDE_PX + _EDGE_PX + round(max(text_width(_makespan(forward)) for forward in shown))
    with drawing():
        sheet = new_sheet(height)
        size = (1 - (_LEFT_PX + right) / WIDTH_PX, 1 - (_ABOVE_PX + below) / height)
        axes = sheet.add_axes((_LEFT_PX / WIDTH_PX, below / height, *size))
        _draw(axes, shown)
        left = (_LEFT_PX - 150) / WIDTH_PX
        sheet.text(left, 1 - 20 / height, "Where each forward's time went", fontsize=11, va="center", weight="bold")
        sheet.text(left, 1 - 40 / height, _about(len(measured), len(shown)), color=MUTED, va="center")
        place_legend(sheet, legend, _LEFT_PX)
        return written(sheet, style)


def _about(measured: int, shown: int) -> str:
    if shown < measured:
        return f"the {shown} of {measured} measured forwards that took longest, in their order"
    return "every measured forward, in its order" if measured > 1 else "the only forward measured"


def _makespan(forward: Forward) -> str:
    return f"{milliseconds(forward.measures.makespan_ns)} ms"


def _draw(axes: Axes, shown: Sequence[Forward]) -> None:
    longest = max(max(one.measures.makespan_ns, one.measures.ideal_ns or 0) for one in shown) / 1e6 or 1.0
    axes.set_xlim(0, longest)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    names = [f"{drawable(forward.name, 20)} ({forward.index})" for forward in shown]
    axes.set_yticks(range(len(shown)), names, color=INK)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", color=LINE)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    axes.set_xlabel("ms")
    px_per_ms = pixels_per_unit(axes)
    for row, forward in enumerate(shown):
        _bar(axes, row, forward, px_per_ms)


def _bar(axes: Axes, row: int, forward: Forward, px_per_ms: float) -> None:
    measures, begun = forward.measures, 0.0
    ideal = measures.ideal_ns
    middle = row if ideal is None else row - _IDEAL / 2
    for name in CATEGORIES:
        length = measures.accounting[name] / 1e6
        colour = CATEGORY_COLOURS[name]
        axes.barh(middle, length, left=begun, height=_TAKEN, color=colour, edgecolor="white", linewidth=0.4)
        words = f"{name} {percent(measures.accounting[name] / measures.makespan_ns)}" if measures.makespan_ns else name
        if text_width(words, _TEXT) + 8 < length * px_per_ms:
            axes.text(
                begun + length / 2,
                middle,
                words,
                ha="center",
                va="center_baseline",
                fontsize=_TEXT,
                color=text_on(colour),
            )
        begun += length
    axes.annotate(
        _makespan(forward), (begun, middle), (6, 0), textcoords="offset points", va="center",
        color=INK, annotation_clip=False,
    )  # fmt: skip
    if ideal is not None:
        axes.barh(middle + _TAKEN / 2 + _IDEAL / 2 + 0.03, ideal / 1e6, height=_IDEAL, color=MUTED)
