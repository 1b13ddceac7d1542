"""A timeline as a picture for a page or a slide: rows of boxes, holes by cause, no label over another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.collections import PolyCollection

from traceview.analysis.timeline import RowKind, What
from traceview.analysis.timeline_merge import merge_boxes, merge_holes
from traceview.errors import SelectionError
from traceview.render.figure import (
    DPI,
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
from traceview.render.figure_blocks import NS_PER_MS, View, write_labels
from traceview.render.figure_legend import legend_height, place_legend
from traceview.render.palette import BOX_COLOURS, CATEGORY_COLOURS, layer_colours
from traceview.report import CATEGORIES
from traceview.units import milliseconds, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from traceview.analysis.timeline import Timeline
    from traceview.model import Ints
    from traceview.render.figure_legend import Entry

MOST_BOXES = 6_000
"""What more than these would show is below a pixel of the picture."""

_ROW_PX, _ABOVE_PX, _AXIS_PX = 52, 78, 48
_MARGIN_PX, _RIGHT_PX = 22, 22
_MARKS_APART_PX = 5
_LABEL = 34
"""characters of a row's label"""
_HOLE_HEIGHT, _BOX_HEIGHT, _RANGE_HEIGHT = 0.94, 0.62, 0.4
_WORDS: dict[int, str] = {
    What.CALL: "API call",
    What.BLOCKING: "blocking API call",
    What.FOREIGN: "of no or another forward",
    What.READBACK: "read back",
    What.OTHER: "other operation",
}
_SHORTEST_NS = 1_000
"""What a picture shows at least, so that its axis has numbers to show."""
_LEAD_IN = 0.06
"""The part of the makespan before t0 that is shown of a longer lead-in."""


def draw_timeline(drawn: Timeline, style: str, layers: tuple[int | None, int | None] | None = None) -> bytes:
    """Return the picture of a timeline as a file of the given style (``png``, ``svg``, ``pdf``), 1200 px wide.

    ``layers`` (first, last + 1; below 0 from the end) shows only the time of these layers, from the first load to the
    last compute; raises ``SelectionError`` where the forward has none of them.
    """
    low, high = _window(drawn, layers)
    legend = _legend(drawn)
    left = round(max(text_width(drawable(row.label, _LABEL)) for row in drawn.rows)) + _MARGIN_PX + 8
    below = _AXIS_PX + legend_height(legend, left)
    height = _ABOVE_PX + _ROW_PX * len(drawn.rows) + below
    with drawing():
        sheet = new_sheet(height)
        axes = sheet.add_axes(
            (
                left / WIDTH_PX,
                below / height,
                1 - (left + _RIGHT_PX) / WIDTH_PX,
                1 - (below + _ABOVE_PX) / height,
            )
        )
        high = max(high, low + _SHORTEST_NS)
        axes.set_xlim((low - drawn.zero_ns) / NS_PER_MS, (high - drawn.zero_ns) / NS_PER_MS)
        view = View(drawn, low, high, pixels_per_unit(axes) / NS_PER_MS, _layer_colours(drawn))
        _rows(axes, drawn)
        _holes(axes, view)
        _boxes(axes, view)
        _arrows(axes, view)
        _marks(axes, view)
        _titles(sheet, drawn, height)
        place_legend(sheet, legend, left)
        return written(sheet, style)


def _window(drawn: Timeline, layers: tuple[int | None, int | None] | None) -> tuple[int, int]:
    if layers is None:
        if drawn.forward is None:
            return drawn.start_ns, drawn.end_ns
        makespan = drawn.forward.t1_ns - drawn.forward.t0_ns
        low = max(drawn.start_ns, drawn.forward.t0_ns - round(_LEAD_IN * makespan))
        return low, drawn.end_ns + max(1, round(0.004 * makespan))
    present = sorted(set(drawn.boxes.layer.tolist()) - {-1})
    beyond = present[-1] + 1 if present else 0
    first, last = (side + beyond if side is not None and side < 0 else side for side in layers)
    wanted = [one for one in present if (first is None or one >= first) and (last is None or one < last)]
    if not wanted:
        there = f"{present[0]} to {present[-1]}" if present else "none: the forward has no layers"
        raise SelectionError("no layer lies in this selection", f"there is: {there}")
    own = np.isin(drawn.boxes.layer, wanted) & (drawn.boxes.what < What.CALL)
    low, high = int(drawn.boxes.start[own].min()), int(drawn.boxes.end[own].max())
    margin = max(1, (high - low) // 50)
    return low - margin, high + margin


def _layer_colours(drawn: Timeline) -> dict[int, str]:
    layers = sorted({*drawn.boxes.layer.tolist(), *drawn.holes.layer.tolist()} - {-1})
    return dict(zip(layers, layer_colours(len(layers)), strict=True))


def _rows(axes: Axes, drawn: Timeline) -> None:
    count = len(drawn.rows)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks(range(count), [drawable(row.label, _LABEL) for row in drawn.rows], color=INK)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", color=LINE)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x")
    for row in range(0, count, 2):
        axes.axhspan(row - 0.5, row + 0.5, color="#f4f6f8", zorder=0, linewidth=0)
    axes.ticklabel_format(axis="x", style="plain", useOffset=False)
    axes.set_xlabel("ms after the first operation")


def _holes(axes: Axes, view: View) -> None:
    holes = view.drawn.holes
    inside = (holes.end > view.low_ns) & (holes.start < view.high_ns) & (holes.row >= 0)
    holes = merge_holes(holes.take(inside), MOST_BOXES)
    colours = [CATEGORY_COLOURS[CATEGORIES[category]] for category in holes.category.tolist()]
    _rectangles(axes, view, (holes.row, holes.start, holes.end), colours, _HOLE_HEIGHT, 2)
    # a merged hole has boxes in it, and a queue on its own stream is full of them: no room for a word
    free = (holes.count == 1) & (holes.category != CATEGORIES.index("stream_queue"))
    words = [CATEGORIES[category] if one else "" for category, one in zip(holes.category.tolist(), free, strict=True)]
    write_labels(axes, view, (holes.row, holes.start, holes.end), words, colours, 2.5)


def _boxes(axes: Axes, view: View) -> None:
    boxes = view.drawn.boxes
    boxes = merge_boxes(boxes.take((boxes.end > view.low_ns) & (boxes.start < view.high_ns)), MOST_BOXES)
    ranges = boxes.what == What.RANGE
    for chosen, height in ((ranges, _RANGE_HEIGHT), (~ranges, _BOX_HEIGHT)):
        own = boxes.take(chosen)
        colours = [
            _box_colour(view, what, layer) for what, layer in zip(own.what.tolist(), own.layer.tolist(), strict=True)
        ]
        place = (own.row, own.start, own.end)
        _rectangles(axes, view, place, colours, height, 3)
        labelled = zip(own.row.tolist(), own.what.tolist(), own.layer.tolist(), own.name.tolist(), strict=True)
        write_labels(axes, view, place, [_box_label(view, *one) for one in labelled], colours)


def _box_colour(view: View, what: int, layer: int) -> str:
    if what in (What.LOAD, What.COMPUTE) and layer >= 0:
        return view.colours[layer]
    return BOX_COLOURS[What(what).name.lower()]


def _box_label(view: View, row: int, what: int, layer: int, name: int) -> str:
    if what == What.LOAD and layer >= 0 and view.drawn.rows[row].kind is RowKind.COMPUTE:
        return f"load {layer}"
    if what in (What.LOAD, What.COMPUTE) and layer >= 0:
        return f"L{layer}"
    return drawable(view.drawn.names[name], 40) if name >= 0 else ""


def _rectangles(
    axes: Axes, view: View, place: tuple[Ints, Ints, Ints], colours: list[str], height: float, above: int
) -> None:
    """Draw one rectangle per row of ``place`` (row, start, end), at least a px wide and edged where it is wide."""
    row, start, end = place
    if not len(row):
        return
    least = 0.8 / view.px_per_ns
    wide = (end - start) * view.px_per_ns > 4
    left, right = view.ms(start), view.ms(np.maximum(end, start + least))
    top, bottom = row - height / 2, row + height / 2
    corners = np.stack((left, top, left, bottom, right, bottom, right, top), axis=1).reshape(-1, 4, 2)
    edges = ["white" if one else colour for one, colour in zip(wide.tolist(), colours, strict=True)]
    widths = np.where(wide, 0.5, 0.0)
    axes.add_collection(
        PolyCollection(list(corners), facecolors=colours, edgecolors=edges, linewidths=widths, zorder=above),
        autolim=False,
    )


def _arrows(axes: Axes, view: View) -> None:
    """Draw each wait for an event as a line from the end of the work before it to the start of the work after it."""
    arrows = view.drawn.arrows
    columns = (arrows.from_row, arrows.from_time, arrows.to_row, arrows.to_time)
    for from_row, ended, to_row, started in zip(*(column.tolist() for column in columns), strict=True):
        if max(ended, started) < view.low_ns or min(ended, started) > view.high_ns:
            continue
        down = 1 if to_row > from_row else -1
        leave, reach = from_row + down * _BOX_HEIGHT / 2, to_row - down * _BOX_HEIGHT / 2
        xs = [view.ms(ended)] * 2 + [view.ms(started)] * 2
        ys = [leave, leave + down * 0.08, reach - down * 0.08, reach]
        axes.plot(xs, ys, color=MUTED, linewidth=0.8, alpha=0.8, zorder=5, clip_on=True)


def _marks(axes: Axes, view: View) -> None:
    """Mark where the forward begins and ends and where an ideal one would end; labels stand beside each other."""
    forward = view.drawn.forward
    if forward is None:
        return
    marks = [(forward.t0_ns, "t0"), (forward.t1_ns, "t1")]
    ideal = forward.measures.ideal_ns
    if ideal is not None:
        marks.append((forward.t0_ns + ideal, "ideal"))
    inside = [(at, word) for at, word in sorted(marks) if view.low_ns <= at <= view.high_ns]
    places = [((at - view.low_ns) * view.px_per_ns, text_width(word)) for at, word in inside]
    farthest = (view.high_ns - view.low_ns) * view.px_per_ns + _RIGHT_PX - _MARKS_APART_PX
    for (at, word), middle in zip(inside, _beside_each_other(places, farthest), strict=True):
        axes.axvline(view.ms(at), color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4)
        axes.annotate(
            word, (0, 1), (middle * 72 / DPI, 5), xycoords="axes fraction", textcoords="offset points",
            ha="center", va="bottom", color=MUTED,
        )  # fmt: skip


def _beside_each_other(places: list[tuple[float, float]], farthest: float) -> list[float]:
    """Return where the middles of labels stand, in px: as near as can be to where they belong, and none over another.

    ``places`` are middle and width from left to right; no label ends after ``farthest``.
    """
    ends: list[float] = []
    for middle, width in places:
        ends.append(max(middle + width / 2, ends[-1] + _MARKS_APART_PX + width if ends else middle + width / 2))
    limit = farthest
    for at in range(len(ends) - 1, -1, -1):
        ends[at] = min(ends[at], limit)
        limit = ends[at] - places[at][1] - _MARKS_APART_PX
    return [end - width / 2 for end, (_, width) in zip(ends, places, strict=True)]


def _titles(sheet: Figure, drawn: Timeline, height: int) -> None:
    forward = drawn.forward
    if forward is None:
        title, about = drawn.title, "no forward was found: rows by what their copies and kernels do"
    else:
        measures = forward.measures
        title = f"{drawable(forward.name)} · makespan {milliseconds(measures.makespan_ns)} ms"
        if measures.ideal_ns is not None and measures.pipeline_efficiency is not None:
            title += (
                f" · ideal {milliseconds(measures.ideal_ns)} ms · efficiency {percent(measures.pipeline_efficiency)}"
            )
        about = f"{drawn.title}, index {forward.index}, process {forward.process}, GPU {forward.device}"
    left = _MARGIN_PX / WIDTH_PX
    sheet.text(left, 1 - 20 / height, title, fontsize=11, va="center", weight="bold")
    sheet.text(left, 1 - 38 / height, about, color=MUTED, va="center")


def _legend(drawn: Timeline) -> list[Entry]:
    accounting = drawn.forward.measures.accounting if drawn.forward else {}
    entries = [
        (CATEGORY_COLOURS[name], f"{name} {milliseconds(accounting[name])} ms")
        for name in CATEGORIES[1:]
        if accounting.get(name)
    ]
    layered = (drawn.boxes.layer >= 0) & np.isin(drawn.boxes.what, (What.LOAD, What.COMPUTE))
    plain = sorted(set(drawn.boxes.what[~layered].tolist()) - {What.RANGE})
    return entries + [
        (BOX_COLOURS[What(what).name.lower()], _WORDS.get(what, What(what).name.lower())) for what in plain
    ]
