"""What the charts of a page draw, as plain data: numbers in ns and bytes, names as harmless text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.analysis.timeline import What
from traceview.render.palette import BOX_COLOURS, CATEGORY_COLOURS, CHANGE_COLOURS, SERIES_COLOURS, layer_colours
from traceview.render.shown import shown
from traceview.render.tables import Bars
from traceview.render.verdict import PHRASES
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from traceview.analysis.timeline import Timeline
    from traceview.model import Ints
    from traceview.render.tables import Section

NAME_SHOWN = 160
_SAME_PLACE = 0.004
"""Part of the makespan within which two marks would stand on each other."""


def palette() -> dict[str, Any]:
    """Return the colours and words that all charts share."""
    return {
        "categories": [
            {"name": name, "colour": CATEGORY_COLOURS[name], "phrase": PHRASES[name]} for name in CATEGORIES
        ],
        "boxes": [BOX_COLOURS[what.name.lower()] for what in What],
        "series": SERIES_COLOURS,
        "changes": CHANGE_COLOURS,
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
    layers = sorted({*boxes.layer.tolist(), *holes.layer.tolist()} - {-1})
    marks = _marks(drawn)
    return {
        "start": drawn.start_ns - zero,
        "end": drawn.end_ns - zero,
        "marks": marks,
        "changes": [],
        "between": None,
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


def _marks(drawn: Timeline) -> list[dict[str, Any]]:
    """Return where the forward begins and ends, and where an ideal one would end if that is another place."""
    forward = drawn.forward
    if forward is None:
        return []
    makespan, ideal = forward.t1_ns - forward.t0_ns, forward.measures.ideal_ns
    marks = [{"at": 0, "label": "t0"}, {"at": makespan, "label": "t1"}]
    if ideal is not None and abs(ideal - makespan) > _SAME_PLACE * makespan:
        marks.append({"at": ideal, "label": "ideal"})
    return marks


def _column(values: Ints) -> int | list[int]:
    """Return a column, or one number where all rows have the same."""
    return int(values[0]) if len(values) and (values == values[0]).all() else values.tolist()


def _differences(values: Ints) -> list[int]:
    return np.diff(values, prepend=0).tolist()  # type: ignore[no-any-return]
