"""How the forwards of one trace, or of several, follow each other: makespan, ideal and what the first layer waits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from traceview.errors import SelectionError
from traceview.render.figure import INK, LINE, MUTED, WIDTH_PX, drawable, drawing, new_sheet, text_width, written
from traceview.render.figure_legend import legend_height, place_legend
from traceview.render.palette import CATEGORY_COLOURS
from traceview.units import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from traceview.report import Report

_HEIGHT_PX, _ABOVE_PX, _AXIS_PX = 330, 86, 50
_LEFT_PX, _RIGHT_PX = 76, 24
_MAKESPAN, _IDEAL, _FIRST = CATEGORY_COLOURS["compute"], "#5c6675", CATEGORY_COLOURS["load_copy"]


@dataclass(frozen=True)
class Point:
    """One forward of a run; times in ns, None for what the trace could not tell."""

    run: str
    makespan_ns: int
    ideal_ns: int | None
    first_layer_exposed_ns: int | None
    measured: bool = True
    """False for warm-up, which is drawn hollow"""


def points_of(report: Report) -> tuple[Point, ...]:
    """Return the forwards of one report, warm-up included; the run is the trace's file name."""
    run = PurePath(report.trace.path).name
    return tuple(
        Point(
            run,
            forward.measures.makespan_ns,
            forward.measures.ideal_ns,
            forward.measures.first_layer_exposed_ns,
            not forward.warmup,
        )
        for forward in report.forwards
    )


def draw_history(points: Sequence[Point], style: str) -> bytes:
    """Return the picture of forwards in their order, as a file of the given style; runs are set apart by lines.

    Raises ``SelectionError`` where there is none.
    """
    if not points:
        raise SelectionError("no forward was found, so there is no history", "see: traceview doctor TRACE")
    legend = [(_MAKESPAN, "makespan (hollow: warm-up)")]
    legend += [(_IDEAL, "ideal")] if any(point.ideal_ns is not None for point in points) else []
    if any(point.first_layer_exposed_ns is not None for point in points):
        legend.append((_FIRST, "first layer exposed"))
    below = _AXIS_PX + legend_height(legend, _LEFT_PX)
    height = _ABOVE_PX + _HEIGHT_PX + below
    with drawing():
        sheet = new_sheet(height)
        size = (1 - (_LEFT_PX + _RIGHT_PX) / WIDTH_PX, _HEIGHT_PX / height)
        axes = sheet.add_axes((_LEFT_PX / WIDTH_PX, below / height, *size))
        _lines(axes, points)
        _runs(axes, points)
        left = 22 / WIDTH_PX
        sheet.text(left, 1 - 20 / height, "Forwards in their order", fontsize=11, va="center", weight="bold")
        sheet.text(left, 1 - 40 / height, f"{len(points)} forwards, times in ms", color=MUTED, va="center")
        place_legend(sheet, legend, _LEFT_PX)
        return written(sheet, style)


def _lines(axes: Axes, points: Sequence[Point]) -> None:
    measured = [(at, point) for at, point in enumerate(points) if point.measured]
    warmup = [(at, point) for at, point in enumerate(points) if not point.measured]
    for field, colour, marker, wide in (
        ("ideal_ns", _IDEAL, "_", 14),  # wider than the dots: an ideal just below its makespan sticks out of it
        ("first_layer_exposed_ns", _FIRST, ".", 7),
        ("makespan_ns", _MAKESPAN, "o", 7),
    ):
        for chosen, filled in ((warmup, False), (measured, True)):
            known = [(at, getattr(point, field) / 1e6) for at, point in chosen if getattr(point, field) is not None]
            if known:
                fill = colour if filled else "white"
                axes.plot(*zip(*known, strict=True), marker, color=colour, markerfacecolor=fill, markersize=wide)
    axes.set_xlim(-0.5, len(points) - 0.5)
    top = 1.15 * max(point.makespan_ns for _, point in measured or warmup) / 1e6
    axes.set_ylim(0, top or 1)
    for at, point in warmup:
        if point.makespan_ns / 1e6 > top:
            axes.text(at, top * 0.97, f"↑ {milliseconds(point.makespan_ns)}", ha="center", va="top", color=_MAKESPAN)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=16, integer=True))
    axes.grid(axis="y")
    axes.tick_params(color=LINE)
    axes.set_xlabel("forward")


def _runs(axes: Axes, points: Sequence[Point]) -> None:
    """Write each run's name above its forwards where there is room, and draw a line between runs."""
    firsts = [at for at in range(len(points)) if at == 0 or points[at].run != points[at - 1].run]
    per_forward = (WIDTH_PX - _LEFT_PX - _RIGHT_PX) / len(points)
    for first, following in zip(firsts, [*firsts[1:], len(points)], strict=True):
        if first:
            axes.axvline(first - 0.5, color=LINE, linewidth=1)
        words = drawable(points[first].run, 40)
        if text_width(words) + 8 < (following - first) * per_forward:
            middle = (first + following - 1) / 2
            axes.annotate(
                words, (middle, 1), (0, 5), xycoords=("data", "axes fraction"), textcoords="offset points", ha="center",
                color=INK,
            )  # fmt: skip
