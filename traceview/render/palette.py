"""Colours of the pictures: of the accounting's categories, of layers, and of what is neither.

Layers run through cool hues, every second one lighter, so that neighbours differ without hue; what costs time is warm
or grey. A test holds what stands side by side apart as people with red-green and blue-yellow blindness see it.
"""

from __future__ import annotations

CATEGORY_COLOURS = {
    "compute": "#3b6fb6",
    "load_copy": "#e8871e",
    "load_gap": "#f6c48a",
    "stream_queue": "#7b2d8b",
    "engine_queue": "#c58bd3",
    "sync": "#b3122d",
    "implicit_sync": "#f28fa0",
    "submit": "#ecdb5a",
    "host": "#8a7a12",
    "sm_busy": "#0f6e63",
    "launch": "#7f868e",
}

BOX_COLOURS = {
    "load": "#2a9d8f",
    "compute": "#3b6fb6",
    "input": "#8f8fb8",
    "readback": "#8d6e63",
    "writeback": "#5f7f95",
    "other": "#b79f7f",
    "foreign": "#c3c7cc",
    "call": "#9aa7b4",
    "blocking": "#b3122d",
    "range": "#d5dbe2",
}

SERIES_COLOURS = ("#3b6fb6", "#e8871e", "#0f8a7b", "#7b2d8b", "#8a7a12", "#b3122d", "#9aa0a8")
"""of groups that stand beside each other in one chart"""

CHANGE_COLOURS = {"improved": "#26b068", "regressed": "#c2104a"}
"""of frames around what a comparison found changed"""

_LAYER_STOPS = ((0x2A, 0x4B, 0x9B), (0x1F, 0x86, 0xBF), (0x1C, 0x95, 0x8A), (0x3F, 0x8F, 0x4F))
_LIGHTER = 0.42


def layer_colours(layers: int) -> tuple[str, ...]:
    """Return a colour for each of ``layers`` layers: dark blue to green, every second one lighter."""
    return tuple(_layer_colour(position, layers) for position in range(layers))


def text_on(colour: str) -> str:
    """Return black or white, whichever reads better on a colour written ``#rrggbb``."""
    red, green, blue = (_linear(int(colour[at : at + 2], 16) / 255) for at in (1, 3, 5))
    luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    # contrast with white falls below that with black where the luminance passes this value (WCAG 2)
    return "#ffffff" if luminance < 0.179 else "#000000"


def _layer_colour(position: int, layers: int) -> str:
    along = position / max(1, layers - 1) * (len(_LAYER_STOPS) - 1)
    first = min(int(along), len(_LAYER_STOPS) - 2)
    mixed = [
        low + (high - low) * (along - first)
        for low, high in zip(_LAYER_STOPS[first], _LAYER_STOPS[first + 1], strict=True)
    ]
    if position % 2:
        mixed = [channel + (255 - channel) * _LIGHTER for channel in mixed]
    return "#" + "".join(f"{round(channel):02x}" for channel in mixed)


def _linear(channel: float) -> float:
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
