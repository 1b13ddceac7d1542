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
_TOUCHING_PX = 3
"""Blocks closer than this look like one with a line in it."""


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


@dataclass
class _Run:
    """Neighbours on a row that share one label; ``blocks`` are their (start, end)."""

    row: int
    label: str
    colour: str
    blocks: list[tuple[int, int]]


def write_labels(
    axes: Axes, view: View, place: tuple[Ints, Ints, Ints], labels: list[str], colours: list[str], above: float = 6
) -> None:
    """Write the label of each block where it fits; a layer's number alone, and smaller, where only that fits.

    ``place`` is row, start and end of each block. Neighbours with one label share it: it stands in the first block that
    has room, else across blocks without a hole between them.
    """
    for run in _runs(place, labels, colours):
        text, size, middle = _placed(run, view)
        if text:
            drawn = axes.text(
                view.ms(middle), run.row, text, fontsize=size, color=text_on(run.colour), zorder=above, clip_on=True
            )
            drawn.set(ha="center", va="center_baseline")


def _placed(run: _Run, view: View) -> tuple[str, float, float]:
    """Return what of a run's label fits, how large, and around which ns: the text is empty where nothing fits."""
    shown = [(max(low, view.low_ns), min(high, view.high_ns)) for low, high in run.blocks]
    stretch = max(_stretches(shown, _TOUCHING_PX / view.px_per_ns), key=_length)
    inside = [block for block in shown if stretch[0] <= block[0] and block[1] <= stretch[1]]
    found = _fitting(run.label, _length(stretch) * view.px_per_ns)
    roomy = (block for block in inside if _fitting(run.label, _length(block) * view.px_per_ns) == found)
    home = next(roomy, stretch)
    return (*found, sum(home) / 2)


def _stretches(blocks: list[tuple[int, int]], apart_ns: float) -> list[tuple[int, int]]:
    """Return blocks joined where they are no farther apart than that."""
    joined = [blocks[0]]
    for low, high in blocks[1:]:
        first, last = joined[-1]
        if low - last <= apart_ns:
            joined[-1] = (first, max(last, high))
        else:
            joined.append((low, high))
    return joined


def _length(interval: tuple[int, int]) -> int:
    return interval[1] - interval[0]


def _fitting(label: str, room_px: float) -> tuple[str, float]:
    """Return what of a label fits into a block and how large, or nothing."""
    if text_width(label, BLOCK_TEXT) + 5 <= room_px:
        return label, BLOCK_TEXT
    number = label[1:]
    layer = label.startswith("L") and number.isdecimal()
    return (number, _SMALL_TEXT) if layer and text_width(number, _SMALL_TEXT) + 1 <= room_px else ("", 0.0)


def _runs(place: tuple[Ints, Ints, Ints], labels: list[str], colours: list[str]) -> list[_Run]:
    """Return blocks by row, neighbours with the label of one layer together."""
    runs: list[_Run] = []
    row, start, end = (column.tolist() for column in place)
    last: dict[int, _Run] = {}
    for at, low, high, label, colour in zip(row, start, end, labels, colours, strict=True):
        before = last.get(at)
        if before is not None and label.startswith("L") and (before.label, before.colour) == (label, colour):
            before.blocks.append((low, high))
            continue
        last[at] = _Run(at, label, colour, [(low, high)])
        runs.append(last[at])
    return runs
