"""Two forwards of different traces under each other on one time axis, both beginning at 0."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from traceview.analysis.timeline import Timeline

if TYPE_CHECKING:
    from traceview.analysis.timeline import Arrows, Boxes, TimedHoles

    Drawn = TypeVar("Drawn", Boxes, TimedHoles, Arrows)


def under_each_other(base: Timeline, new: Timeline, words: tuple[str, str] = ("base", "new")) -> Timeline:
    """Return both timelines as one without a forward: the rows of ``base``, then those of ``new``, times after zero."""
    first, second = _from_zero(base, 0, 0), _from_zero(new, len(base.rows), len(base.names))
    rows = [
        replace(row, label=f"{word}: {row.label}")
        for word, timeline in zip(words, (base, new), strict=True)
        for row in timeline.rows
    ]
    return Timeline(
        title=f"{words[0]} and {words[1]}",
        forward=None,
        zero_ns=0,
        start_ns=min(first.start_ns, second.start_ns),
        end_ns=max(first.end_ns, second.end_ns),
        rows=tuple(rows),
        names=base.names + new.names,
        boxes=_joined(first.boxes, second.boxes),
        holes=_joined(first.holes, second.holes),
        arrows=_joined(first.arrows, second.arrows),
        things=base.things + new.things,
        rows_left_out=base.rows_left_out + new.rows_left_out,
    )


def _from_zero(one: Timeline, rows: int, names: int) -> Timeline:
    """Return a timeline whose zero is 0, with its rows and names numbered from others on."""
    zero = one.zero_ns
    boxes, holes, arrows = one.boxes, one.holes, one.arrows
    name = np.where(boxes.name >= 0, boxes.name + names, -1)
    cause = np.where(holes.cause >= 0, holes.cause + names, -1)
    row = np.where(holes.row >= 0, holes.row + rows, -1)
    return replace(
        one,
        zero_ns=0,
        start_ns=one.start_ns - zero,
        end_ns=one.end_ns - zero,
        boxes=replace(boxes, start=boxes.start - zero, end=boxes.end - zero, row=boxes.row + rows, name=name),
        holes=replace(holes, start=holes.start - zero, end=holes.end - zero, row=row, cause=cause),
        arrows=type(arrows)(
            arrows.from_row + rows, arrows.from_time - zero, arrows.to_row + rows, arrows.to_time - zero
        ),
    )


def _joined(first: Drawn, second: Drawn) -> Drawn:
    names = [entry.name for entry in fields(first)]
    return type(first)(**{name: np.concatenate((getattr(first, name), getattr(second, name))) for name in names})
