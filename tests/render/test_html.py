"""The HTML report as text: what stands in it, and what cannot get into it."""

from __future__ import annotations

import hashlib
import re
from html.parser import HTMLParser
from importlib import resources
from typing import TYPE_CHECKING

import pytest
from drawn_scenes import eight_layers, hostile_names
from report_samples import SAMPLES

from traceview.analysis.compare import compare
from traceview.analysis.compare_sides import Captured, gather_sides
from traceview.analysis.drawings import collect_drawings, median_timeline
from traceview.analysis.report import ReportOptions, build_report
from traceview.reading import read
from traceview.render import html_diff
from traceview.render.html import render
from traceview.render.html_document import asset, embedded, library

if TYPE_CHECKING:
    from pathlib import Path

_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "h1",
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "nav",
        "a",
        "main",
    ),
    *("section", "figure", "figcaption", "div", "span", "table", "caption", "thead", "tbody", "tr", "th", "td", "i"),
    *("code", "bdi", "article", "button", "footer", "script"),
}
_NEVER_CLOSED = {"meta"}


class Outline(HTMLParser):
    """Collects the tags, addresses and text of a page, and fails on tags that do not match."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.handlers: list[str] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._open += [] if tag in _NEVER_CLOSED else [tag]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href", "action", "data", "srcset")]
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("script", "style"):
            self.text.append(data)


def page_of(path: Path) -> str:
    trace, options = read(path), ReportOptions()
    made = build_report(trace, options)
    return render(made, drawings=collect_drawings(trace, options.forwards, made))


@pytest.mark.parametrize("name", SAMPLES)
def test_every_report_is_a_page_of_known_tags_that_loads_nothing(name: str) -> None:
    page = render(SAMPLES[name]())
    outline = Outline(page)
    assert set(outline.tags) <= _TAGS
    assert outline.tags.count("script") == 3
    assert outline.handlers == []
    assert all(address.startswith("#") for address in outline.addresses)
    assert len(page.encode()) < 3_000_000


def test_the_policy_of_a_page_allows_its_own_scripts_only(tmp_path: Path) -> None:
    page = page_of(eight_layers(tmp_path / "eight.sqlite"))
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy.group(1).startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.group(1)
    assert "unsafe-eval" not in policy.group(1)
    assert "http:" not in policy.group(1)


@pytest.mark.parametrize("scene", [eight_layers, hostile_names])
def test_a_page_of_a_trace_is_small_and_well_formed(scene: object, tmp_path: Path) -> None:
    page = page_of(scene(tmp_path / "scene.sqlite"))  # type: ignore[operator]
    assert set(Outline(page).tags) <= _TAGS
    assert len(page.encode()) < 3_000_000
    assert all(one.isprintable() or one.isspace() for one in "".join(Outline(page).text))


def test_names_stay_text(tmp_path: Path) -> None:
    page = page_of(hostile_names(tmp_path / "hostile.sqlite"))
    page = page.replace(asset("echarts/echarts.min.js"), "")
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "\u2028" not in page
    assert "n" * 1_000 not in page
    assert "\\u003cimg src=x onerror=alert(1)\\u003e" in page


def test_what_is_embedded_cannot_end_its_script() -> None:
    text = "</script><!--<script>\u2028\u2029&"
    assert not set(embedded({text: [text]})) & set("<>&\u2028\u2029")


def test_our_scripts_cannot_end_their_element() -> None:
    folder = resources.files("traceview.render").joinpath("assets")
    scripts = [one.read_text(encoding="utf-8") for one in folder.iterdir() if one.name.endswith(".js")]
    assert scripts
    for script in (*scripts, asset("echarts/echarts.min.js")):
        assert "</script" not in script.lower()
        assert "<!--" not in script
    assert "</style" not in asset("page.css").lower()


def test_the_charting_library_is_the_released_file() -> None:
    facts = library()
    file = resources.files("traceview.render").joinpath("assets", "echarts", "echarts.min.js")
    assert hashlib.sha256(file.read_bytes()).hexdigest() == facts["sha256"]
    assert facts["version"] in file.read_text(encoding="utf-8")
    assert "Apache License" in asset("echarts/LICENSE")
    assert "Mike Bostock" in asset("echarts/LICENSE-d3") or "Michael Bostock" in asset("echarts/LICENSE-d3")
    assert "Apache Software Foundation" in asset("echarts/NOTICE")


def test_a_comparison_is_a_page_with_both_forwards(tmp_path: Path) -> None:
    sides = []
    for name, read_back in (("base", True), ("new", False)):
        trace = read(eight_layers(tmp_path / f"{name}.sqlite", forwards=4, read_back=read_back))
        sides.append(Captured(trace, build_report(trace)))
    options = ReportOptions().forwards
    base, new = (median_timeline(side.trace, options, side.report) for side in sides)
    page = html_diff.render(compare(*gather_sides(sides[:1], sides[1:])), base, new)
    outline = Outline(page)
    assert set(outline.tags) <= _TAGS
    text = " ".join(outline.text)
    assert "Both forwards" in text
    assert "scalar_readback" in text
    without = html_diff.render(compare(*gather_sides(sides[:1], sides[1:])))
    assert "Both forwards" not in without
