"""What all pictures share: a sheet of fixed size and fonts, written as PNG, SVG or PDF without a display.

The same input gives the same bytes: fonts come with matplotlib, ids in SVG are salted, and no date is written.
"""

from __future__ import annotations

import io
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from matplotlib import font_manager, rc_context, rcdefaults, rcParams
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from traceview.render.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

FORMATS = ("png", "svg", "pdf")
DPI = 100
WIDTH_PX = 1200
TEXT_SIZE = 9.0
INK, MUTED, LINE = "#1d2430", "#5c6675", "#d5dae1"

_FONT = "DejaVu Sans"
_STYLE: dict[str, Any] = {
    "font.family": [_FONT],
    "font.size": TEXT_SIZE,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": TEXT_SIZE,
    "path.simplify": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "traceview",
    "pdf.fonttype": 42,
}
_SUBPIXELS = 64
"""FreeType measures in these parts of a px."""
_NO_DATES: dict[str, dict[str, Any]] = {
    "png": {"Software": "traceview"},
    "svg": {"Creator": "traceview", "Date": None},
    "pdf": {"Creator": "traceview", "Producer": "traceview", "CreationDate": None},
}


@contextmanager
def drawing() -> Iterator[None]:
    """Use the style of the pictures, whatever matplotlib is set up for, until the end of the block."""
    with rc_context():
        rcdefaults()
        rcParams.update(_STYLE)  # type: ignore[arg-type]  # matplotlib types each key by name
        yield


def new_sheet(height_px: int) -> Figure:
    """Return an empty figure of the common width; to be used inside :func:`drawing`."""
    figure = Figure(figsize=(WIDTH_PX / DPI, height_px / DPI), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def written(figure: Figure, style: str) -> bytes:
    """Return a figure as a file of one of ``FORMATS``; to be used inside :func:`drawing`."""
    target = io.BytesIO()
    figure.savefig(target, format=style, metadata=_NO_DATES[style])
    return target.getvalue()


def drawable(text: str, longest: int = 60) -> str:
    """Return a name as one harmless line in which every character has a glyph in the font."""
    font = _font()
    return "".join(one if font.get_char_index(ord(one)) else "?" for one in shown(text, longest))


@cache
def text_width(text: str, size: float = TEXT_SIZE) -> float:
    """Return how wide a text is, in px of the sheet."""
    font = _font()
    font.set_size(size, DPI)
    font.set_text(text)
    return float(font.get_width_height()[0]) / _SUBPIXELS


def pixels_per_unit(axes: Axes) -> float:
    """Return how many px one unit of the x axis is, for a linear axis whose limits are set."""
    low, high = axes.get_xlim()
    return float(axes.get_window_extent().width / (high - low))


@cache
def _font() -> Any:
    return font_manager.get_font(font_manager.findfont(font_manager.FontProperties(family=[_FONT])))
