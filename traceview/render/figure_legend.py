"""A legend below a picture: squares with words, in as many lines as they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from traceview.render.figure import MUTED, WIDTH_PX, text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from matplotlib.figure import Figure

Entry = tuple[str, str]
"""colour and words"""

LINE_PX = 22
_SQUARE_PX, _BESIDE_PX, _APART_PX = 10, 6, 22


def legend_height(entries: Sequence[Entry], left_px: int) -> int:
    """Return how many px a legend needs."""
    return LINE_PX * len(_lines(entries, left_px))


def place_legend(sheet: Figure, entries: Sequence[Entry], left_px: int) -> None:
    """Draw a legend at the bottom of a sheet, its first line on top."""
    width, height = (round(inches * sheet.dpi) for inches in sheet.get_size_inches())
    lines = _lines(entries, left_px)
    for number, line in enumerate(lines):
        x, y = float(left_px), LINE_PX * (len(lines) - number - 0.5)
        for colour, words in line:
            corner = (x / width, (y - _SQUARE_PX / 2) / height)
            size = (_SQUARE_PX / width, _SQUARE_PX / height)
            sheet.add_artist(Rectangle(corner, *size, facecolor=colour, edgecolor="none", transform=sheet.transFigure))
            sheet.text((x + _SQUARE_PX + _BESIDE_PX) / width, y / height, words, va="center", color=MUTED)
            x += _width(words)


def _lines(entries: Iterable[Entry], left_px: int) -> list[list[Entry]]:
    """Return the entries line by line, each line filled from the left."""
    lines: list[list[Entry]] = []
    x = float(WIDTH_PX)
    for entry in entries:
        width = _width(entry[1])
        if x + width > WIDTH_PX:
            lines.append([])
            x = float(left_px)
        lines[-1].append(entry)
        x += width
    return lines


def _width(words: str) -> float:
    return _SQUARE_PX + _BESIDE_PX + text_width(words) + _APART_PX
