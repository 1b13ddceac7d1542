"""The part of a timeline that a picture shows, and labels on its blocks that never touch each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceview.render.figure import text_width
from traceview.render.palette import text_on

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from traceview.analysis.timeline import Timeline
    from traceview.model import Ints

NS_PER_MS = 1e6
BLOCK_TEXT = 8.0
_SMALL_TEXT = 6.2


@dataclass(frozen=True)
class View:
    """What part of a timeline is drawn, and how wide a ns is."""

    drawn: Timeline
    low_ns: int
    high_ns: int
    px_per_ns: float
    colours: dict[int, str]

    def ms(self, ns: Any) -> Any:
        """Return ms after the timeline's zero, of one moment or of an array."""
        return (ns - self.drawn.zero_ns) / NS_PER_MS


def write_labels(
    axes: Axes, view: View, place: tuple[Ints, Ints, Ints], labels: list[str], colours: list[str], above: float = 6
) -> None:
    """Write the label of each block where it fits; a layer's number alone, and smaller, where only that fits.

    ``place`` is row, start and end of each block. Neighbours with one label share it.
    """
    for row, low, high, label, colour in _runs(place, labels, colours):
        left, right = max(low, view.low_ns), min(high, view.high_ns)
        text, size = _fitting(label, (right - left) * view.px_per_ns)
        if text:
            middle = view.ms((left + right) / 2)
            drawn = axes.text(middle, row, text, fontsize=size, color=text_on(colour), zorder=above, clip_on=True)
            drawn.set(ha="center", va="center_baseline")


def _fitting(label: str, room_px: float) -> tuple[str, float]:
    """Return what of a label fits into a block and how large, or nothing."""
    if text_width(label, BLOCK_TEXT) + 5 <= room_px:
        return label, BLOCK_TEXT
    number = label[1:]
    layer = label.startswith("L") and number.isdecimal()
    return (number, _SMALL_TEXT) if layer and text_width(number, _SMALL_TEXT) + 1 <= room_px else ("", 0.0)


def _runs(
    place: tuple[Ints, Ints, Ints], labels: list[str], colours: list[str]
) -> list[tuple[int, int, int, str, str]]:
    """Return (row, start, end, label, colour) of neighbours with one label joined, whatever lies between them."""
    runs: list[tuple[int, int, int, str, str]] = []
    row, start, end = (column.tolist() for column in place)
    last: dict[int, int] = {}
    for at, low, high, label, colour in zip(row, start, end, labels, colours, strict=True):
        before = last.get(at)
        if before is not None and label.startswith("L") and runs[before][3:] == (label, colour):
            runs[before] = (at, runs[before][1], max(high, runs[before][2]), label, colour)
            continue
        last[at] = len(runs)
        runs.append((at, low, high, label, colour))
    return runs
