"""Colours that people who see fewer of them can tell apart."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from traceview.render.palette import (
    BOX_COLOURS,
    CATEGORY_COLOURS,
    CHANGE_COLOURS,
    SERIES_COLOURS,
    layer_colours,
    text_on,
)

# Machado, Oliveira, Fernandes 2009, severity 1.0: linear RGB as seen without one kind of cone
_SEEN = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_WHITE = np.array([0.9505, 1.0, 1.089])
JUST_TOLD_APART = 10.0
"""CIE 1976 distance from which colours that do not touch are told apart."""


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(colour: str, seen: np.ndarray) -> np.ndarray:
    xyz = _TO_XYZ @ np.clip(seen @ linear(colour), 0, 1) / _WHITE
    root = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * root[1] - 16, 500 * (root[0] - root[1]), 200 * (root[1] - root[2])])


def distance(first: str, second: str, eyes: str) -> float:
    return float(np.linalg.norm(lab(first, _SEEN[eyes]) - lab(second, _SEEN[eyes])))


def contrast(first: str, second: str) -> float:
    low, high = sorted(float(np.array([0.2126, 0.7152, 0.0722]) @ linear(one)) for one in (first, second))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("eyes", _SEEN)
def test_no_two_categories_look_alike(eyes: str) -> None:
    near = {
        (first, second): round(distance(CATEGORY_COLOURS[first], CATEGORY_COLOURS[second], eyes), 1)
        for first, second in combinations(CATEGORY_COLOURS, 2)
        if distance(CATEGORY_COLOURS[first], CATEGORY_COLOURS[second], eyes) < JUST_TOLD_APART
    }
    assert near == {}


_ON_A_STREAM = ("load", "compute", "input", "readback", "writeback", "other", "foreign")
_ON_A_THREAD = ("call", "blocking")
_SIDE_BY_SIDE = {
    "boxes on a stream": [BOX_COLOURS[name] for name in _ON_A_STREAM],
    "boxes on a thread": [BOX_COLOURS[name] for name in _ON_A_THREAD],
    "groups of a chart": SERIES_COLOURS,
    "frames": list(CHANGE_COLOURS.values()),
}


@pytest.mark.parametrize("eyes", _SEEN)
@pytest.mark.parametrize("where", _SIDE_BY_SIDE)
def test_what_stands_side_by_side_is_told_apart(where: str, eyes: str) -> None:
    assert (
        min(distance(first, second, eyes) for first, second in combinations(_SIDE_BY_SIDE[where], 2)) > JUST_TOLD_APART
    )


@pytest.mark.parametrize("eyes", _SEEN)
@pytest.mark.parametrize("layers", [2, 8, 64])
def test_neighbouring_layers_differ(layers: int, eyes: str) -> None:
    assert min(distance(first, second, eyes) for first, second in pairwise(layer_colours(layers))) > JUST_TOLD_APART


def test_words_on_a_colour_read_well() -> None:
    colours = {*CATEGORY_COLOURS.values(), *BOX_COLOURS.values(), *layer_colours(8), *layer_colours(64)}
    assert min(contrast(text_on(colour), colour) for colour in colours) >= 4.5
