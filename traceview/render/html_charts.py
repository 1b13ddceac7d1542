"""What the charts of a page draw, as plain data: numbers in ns and bytes, names as harmless text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.analysis.timeline import What
from traceview.render.palette import BOX_COLOURS, CATEGORY_COLOURS, layer_colours
from traceview.render.shown import shown
from traceview.render.tables import Bars
from traceview.render.verdict import PHRASES
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.analysis.copy_rates import Ceiling, CopyRates
    from traceview.analysis.timeline import Timeline
    from traceview.model import Ints
    from traceview.render.tables import Section
    from traceview.report import CopyGroup, Report

NAME_SHOWN = 160
GROUPS_SHOWN = 6
_FIT_POINTS = 40


def palette() -> dict[str, Any]:
    """Return the colours and words that all charts share."""
    return {
        "categories": [
            {"name": name, "colour": CATEGORY_COLOURS[name], "phrase": PHRASES[name]} for name in CATEGORIES
        ],
        "boxes": [BOX_COLOURS[what.name.lower()] for what in What],
        "whats": [what.name.lower() for what in What],
    }


def bars(section: Section) -> list[dict[str, Any]]:
    """Return the stacked bars of a section: label and ns by category."""
    return [
        {"label": bar.label, "parts": [{"category": name, "ns": ns} for name, ns in bar.parts]}
        for block in section.blocks
        if isinstance(block, Bars)
        for bar in block.bars
    ]


def timeline(drawn: Timeline) -> dict[str, Any]:
    """Return a timeline; times in ns after its zero, starts as differences to the box before, constants once."""
    zero = drawn.zero_ns
    boxes, holes, arrows = drawn.boxes, drawn.holes, drawn.arrows
    forward = drawn.forward
    layers = sorted({*boxes.layer.tolist(), *holes.layer.tolist()} - {-1})
    ideal = forward.measures.ideal_ns if forward else None
    return {
        "start": drawn.start_ns - zero,
        "end": drawn.end_ns - zero,
        "t1": forward.t1_ns - zero if forward else None,
        "ideal": ideal,
        "rows": [{"kind": row.kind.value, "label": shown(row.label, 60)} for row in drawn.rows],
        "names": [shown(name, NAME_SHOWN) for name in drawn.names],
        "layers": layers,
        "layerColours": layer_colours(len(layers)),
        "things": drawn.things,
        "boxes": {
            "size": len(boxes),
            "start": _differences(boxes.start - zero),
            "length": _column(boxes.end - boxes.start),
            "idle": _column(boxes.end - boxes.start - boxes.busy),
            "row": _column(boxes.row),
            "what": _column(boxes.what),
            "name": _column(boxes.name),
            "layer": _column(boxes.layer),
            "bytes": _column(boxes.n_bytes),
            "queued": _column(boxes.queued),
            "count": _column(boxes.count),
        },
        "holes": {
            "size": len(holes),
            "start": _differences(holes.start - zero),
            "length": _column(holes.end - holes.start),
            "idle": _column(holes.end - holes.start - holes.spent),
            "row": _column(holes.row),
            "category": _column(holes.category),
            "layer": _column(holes.layer),
            "cause": _column(holes.cause),
            "count": _column(holes.count),
        },
        "arrows": np.stack(
            (arrows.from_row, arrows.from_time - zero, arrows.to_row, arrows.to_time - zero), axis=1
        ).tolist(),
    }


def sizes(report: Report) -> dict[str, Any]:
    """Return pieces by power of two for the groups of copies with most bytes; the rest is one group."""
    groups = sorted(report.copies, key=lambda group: -group.n_bytes)
    powers = sorted({int(power) for group in groups for power in group.histogram})
    series = [(_title(group.direction, group.memory, group.stream), [group]) for group in groups[:GROUPS_SHOWN]]
    if groups[GROUPS_SHOWN:]:
        series.append((f"{len(groups) - GROUPS_SHOWN} other groups", groups[GROUPS_SHOWN:]))
    return {
        "powers": powers,
        "series": [{"label": label, "pieces": _pieces(members, powers)} for label, members in series],
    }


def rates(found: Sequence[CopyRates], report: Report, ceilings: Iterable[Ceiling]) -> dict[str, Any]:
    """Return the rate per copy size of the groups with most bytes, each with its fitted line, and the ceilings."""
    series = []
    for group in found[:GROUPS_SHOWN]:
        points = [[size.n_bytes, size.median, size.low, size.high, size.count] for size in group.sizes]
        fitted = _fit_of(report.copies, group)
        ends = (group.sizes[0].n_bytes, group.sizes[-1].n_bytes)
        series.append(
            {
                "label": _title(group.direction, group.memory, group.stream),
                "points": points,
                "fit": _fit_line(fitted, ends) if fitted else None,
                "fitted": f"{fitted[0]:.0f} ns + bytes at {fitted[1]:.1f} GB/s" if fitted else None,
            }
        )
    shown_devices = {group.device for group in found[:GROUPS_SHOWN] if group.direction in ("h2d", "d2h")}
    lines = [
        {"label": f"GPU {one.device}: {one.source}", "rate": one.rate}
        for one in ceilings
        if one.device in shown_devices
    ]
    return {"series": series, "ceilings": lines}


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


def _column(values: Ints) -> int | list[int]:
    """Return a column, or one number where all rows have the same."""
    return int(values[0]) if len(values) and (values == values[0]).all() else values.tolist()


def _differences(values: Ints) -> list[int]:
    return np.diff(values, prepend=0).tolist()  # type: ignore[no-any-return]
