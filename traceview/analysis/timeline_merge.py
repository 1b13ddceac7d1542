"""Lets one box stand for several neighbours that are alike, so that a picture of any forward stays small."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from traceview.analysis.timeline import Boxes, TimedHoles
    from traceview.model import Flags, Ints

    Drawn = TypeVar("Drawn", Boxes, TimedHoles)

MAX_BOXES = 50_000
MAX_HOLES = 15_000
_FINEST = 65_536
"""The first distance below which neighbours are merged is this part of the whole: far below a pixel."""
_COARSER = 4


def merge_boxes(boxes: Boxes, most: int = MAX_BOXES) -> Boxes:
    """Return at most ``most`` boxes (one per row at least); neighbours of one row, kind and layer become one.

    Merged are those with the smallest gaps between them. Bytes, counts and busy times add up, so that no sum over the
    boxes changes.
    """
    return _merged(boxes, ("row", "what", "layer"), ("n_bytes", "count", "busy"), most)


def merge_holes(holes: TimedHoles, most: int = MAX_HOLES) -> TimedHoles:
    """Return at most ``most`` holes (one per row at least); the time given to each category stays the same."""
    order = np.lexsort((holes.start, holes.category, holes.row))
    merged = _merged(holes.take(order), ("row", "category", "layer"), ("count", "spent"), most, ("row", "category"))
    return merged.take(np.argsort(merged.start, kind="stable"))


def _merged(
    drawn: Drawn, alike: tuple[str, ...], added: tuple[str, ...], most: int, last: tuple[str, ...] = ("row",)
) -> Drawn:
    if len(drawn) <= most:
        return drawn
    whole = int(drawn.end.max() - drawn.start.min())
    for keys in (alike, last):
        distance = max(1, whole // _FINEST)
        while True:
            first = _first_of_groups(drawn, keys, distance)
            if int(first.sum()) <= most or distance >= whole:
                break
            distance *= _COARSER
        if int(first.sum()) <= most:
            break
    return _grouped(drawn, np.flatnonzero(_split(first, most)), alike, added)


def _split(first: Flags, most: int) -> Flags:
    """Split groups into parts as small as ``most`` allows, so that no more is merged than need be."""
    start = np.flatnonzero(first)
    place = np.arange(len(first)) - np.repeat(start, np.diff(np.append(start, len(first))))
    members = -(-len(first) // most)
    while members < len(first):
        parts: Flags = place % members == 0
        if int(parts.sum()) <= most:
            return parts
        members *= 2
    return first


def _first_of_groups(drawn: Drawn, keys: tuple[str, ...], distance: int) -> Flags:
    """Return which boxes cannot be drawn together with the one before them."""
    first = np.concatenate(([True], drawn.start[1:] - drawn.end[:-1] > distance))
    for key in keys:
        column = getattr(drawn, key)
        first[1:] |= column[1:] != column[:-1]
    return first


def _grouped(drawn: Drawn, first: Ints, alike: tuple[str, ...], added: tuple[str, ...]) -> Drawn:
    """Return one box per group; what differs inside a group becomes -1, a kind or a category that of its first."""
    columns: dict[str, Ints] = {"end": np.maximum.reduceat(drawn.end, first)}
    columns |= {name: np.add.reduceat(getattr(drawn, name), first) for name in added}
    single = np.diff(np.append(first, len(drawn))) == 1
    for name in ("name", "layer", "cause", "queued"):
        if hasattr(drawn, name):
            column = getattr(drawn, name)
            low, high = np.minimum.reduceat(column, first), np.maximum.reduceat(column, first)
            same = single if name == "queued" else low == high
            columns[name] = np.where(same, low, -1)
    return replace(drawn.take(first), **columns)
