"""Pictures: the same every time, no word over another, and what was agreed on by eye (tests/golden).

After a change that is meant, ``TRACEVIEW_WRITE_GOLDEN=1 python -m pytest tests/render/test_figure.py`` writes the
golden pictures anew; look at each before you commit it.
"""

from __future__ import annotations

import io
import os
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from drawn_scenes import broken_layers, eight_layers, hostile_names, many_layers, wide_numbers
from matplotlib.testing.compare import compare_images
from matplotlib.text import Text
from PIL import Image

from traceview.analysis.drawings import collect_drawings, median_timeline
from traceview.analysis.report import ReportOptions, build_report
from traceview.errors import SelectionError
from traceview.reading import read
from traceview.render import (
    copy_series,
    figure_accounting,
    figure_copies,
    figure_history,
    figure_overlap,
    figure_timeline,
)
from traceview.render.figure import WIDTH_PX
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent.parent / "golden"
TOLERANCE = 6.0
"""Root mean square of the differences, of 255: text drawn by another FreeType differs by less."""


def timeline(path: Path, style: str, layers: tuple[int | None, int | None] | None = None) -> bytes:
    trace = read(path)
    drawn = median_timeline(trace, ReportOptions().forwards, build_report(trace))
    assert drawn is not None
    return figure_timeline.draw_timeline(drawn, style, layers)


def accounting(path: Path, style: str) -> bytes:
    return figure_accounting.draw_accounting(build_report(read(path)), style)


def overlap(path: Path, style: str) -> bytes:
    return figure_overlap.draw_overlap(build_report(read(path)), style)


def copies(path: Path, style: str) -> bytes:
    trace = read(path)
    made = build_report(trace)
    return figure_copies.draw_copies(made, collect_drawings(trace, ReportOptions().forwards, made), style)


def history(path: Path, style: str) -> bytes:
    return figure_history.draw_history(figure_history.points_of(build_report(read(path))), style)


PICTURES: dict[str, tuple[Any, Callable[[Path, str], bytes]]] = {
    "timeline_8_layers": (eight_layers, timeline),
    "timeline_64_layers": (many_layers, timeline),
    "accounting": (eight_layers, accounting),
    "overlap": (eight_layers, overlap),
    "copies": (eight_layers, copies),
    "history": (eight_layers, history),
}


@pytest.mark.pinned
@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_what_was_agreed_on(name: str, tmp_path: Path) -> None:
    scene, draw = PICTURES[name]
    picture = draw(scene(tmp_path / "scene.sqlite"), "png")
    golden = GOLDEN / f"{name}.png"
    if os.environ.get("TRACEVIEW_WRITE_GOLDEN"):
        golden.write_bytes(picture)
    drawn = tmp_path / f"{name}.png"
    drawn.write_bytes(picture)
    assert compare_images(str(golden), str(drawn), tol=TOLERANCE) is None


def test_a_changed_picture_is_noticed(tmp_path: Path) -> None:
    scene = many_layers(tmp_path / "scene.sqlite", layers=63)
    drawn = tmp_path / "timeline_64_layers.png"
    drawn.write_bytes(timeline(scene, "png"))
    assert compare_images(str(GOLDEN / "timeline_64_layers.png"), str(drawn), tol=TOLERANCE) is not None


@pytest.mark.parametrize("style", ["png", "svg", "pdf"])
@pytest.mark.parametrize("name", PICTURES)
def test_the_same_trace_gives_the_same_bytes(name: str, style: str, tmp_path: Path) -> None:
    scene, draw = PICTURES[name]
    path = scene(tmp_path / "scene.sqlite")
    assert draw(path, style) == draw(path, style)


@pytest.fixture
def written_texts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Collect every text that is written, with the box around it in px."""
    found: list[tuple[str, Any]] = []
    draw = Text.draw

    def noted(self: Text, renderer: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            found.append((self.get_text(), self.get_window_extent(renderer)))
        draw(self, renderer)

    monkeypatch.setattr(Text, "draw", noted)
    return found


@pytest.mark.parametrize("scene", [eight_layers, many_layers, hostile_names, wide_numbers, broken_layers])
@pytest.mark.parametrize("draw", [timeline, accounting, overlap, copies, history])
def test_no_label_lies_over_another(
    scene: Any, draw: Callable[[Path, str], bytes], tmp_path: Path, written_texts: list[tuple[str, Any]]
) -> None:
    path = scene(tmp_path / "scene.sqlite")
    width, height = Image.open(io.BytesIO(draw(path, "png"))).size
    assert width == WIDTH_PX
    assert len(written_texts) > 5
    over = [
        (first[0], second[0])
        for first, second in combinations(written_texts, 2)
        if min(first[1].x1, second[1].x1) - max(first[1].x0, second[1].x0) > 1
        and min(first[1].y1, second[1].y1) - max(first[1].y0, second[1].y0) > 1
    ]
    assert over == []
    out = [text for text, box in written_texts if min(box.x0, box.y0, width - box.x1, height - box.y1) < -1]
    assert out == []


def test_copies_that_do_not_cross_the_link_do_not_hide_those_that_do(tmp_path: Path) -> None:
    trace = read(broken_layers(tmp_path / "scene.sqlite"))
    made = build_report(trace)
    drawings = collect_drawings(trace, ReportOptions().forwards, made)
    pieces, fast = copy_series.sizes(made), copy_series.rates(drawings.rates, made, drawings.ceilings)
    assert [one["label"].split()[0] for one in pieces["series"]] == ["d2d", "h2d"]
    assert [(one["label"].split()[0], one["colour"]) for one in fast["series"]] == [("h2d", 1)]
    assert fast["left_out"] == 1


def test_a_selection_of_layers_shows_their_time_only(tmp_path: Path) -> None:
    path = eight_layers(tmp_path / "scene.sqlite")
    assert timeline(path, "png", (2, 4)) != timeline(path, "png")
    assert timeline(path, "png", (-2, None)) == timeline(path, "png", (6, 8))
    with pytest.raises(SelectionError, match="no layer lies in this selection"):
        timeline(path, "png", (8, None))


def test_no_forward_no_accounting(tmp_path: Path) -> None:
    from trace_builder import TraceBuilder

    path = TraceBuilder().kernel(10, 20, call=(1, 2)).kernel(30, 40, call=(3, 4)).write(tmp_path / "bare.sqlite")
    with pytest.raises(SelectionError, match="no forward was measured"):
        accounting(path, "png")
    with pytest.raises(SelectionError, match="no forward was found"):
        history(path, "png")
    with pytest.raises(SelectionError, match="holds no copies"):
        copies(path, "png")
    with pytest.raises(SelectionError, match="no two streams"):
        overlap(path, "png")
    assert timeline(path, "png").startswith(b"\x89PNG")


def test_every_category_has_a_colour() -> None:
    from traceview.render.palette import CATEGORY_COLOURS

    assert tuple(CATEGORY_COLOURS) == CATEGORIES
