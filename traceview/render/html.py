"""The report as one HTML file: verdict, bars, findings, timelines, tables; text first, charts where scripts run."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from traceview.analysis.drawings import Drawings
from traceview.render import copy_series, html_charts
from traceview.render.html_blocks import blocks, escaped, line, section, slug, titled
from traceview.render.html_document import document
from traceview.render.html_overlap import overlap_matrices
from traceview.render.html_timeline import timeline_section
from traceview.render.layout import layout
from traceview.render.shown import shown
from traceview.render.tables import Bars

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.render.tables import Page, Section
    from traceview.report import Report

_FIRST = ("Median forward", "Findings")
"""Sections that stand before the timelines, in this order."""


def render(report: Report, *, drawings: Drawings | None = None) -> str:
    """Return the page of a report; without ``drawings`` it lacks the charts of single operations, nothing else."""
    drawn = drawings or Drawings()
    page = layout(report)
    data: dict[str, Any] = {"palette": html_charts.palette()}
    parts = _Parts(report, page, data)
    body = [
        *parts.named(_FIRST),
        *(timeline_section(one, data) for one in drawn.timelines),
        *parts.rest(drawn),
    ]
    file = shown(PurePath(report.trace.path).name, 80)
    return document(f"{file} · traceview", (header(page), contents(body), "<main>", *body, "</main>"), data)


class _Parts:
    """Writes the sections of one page and collects the data of the charts on them."""

    def __init__(self, report: Report, page: Page, data: dict[str, Any]) -> None:
        self._report, self._data = report, data
        self._sections = {one.title: one for one in page.sections}

    def named(self, titles: Sequence[str]) -> list[str]:
        """Return those of the titled sections that there are, in that order."""
        return [self._section(self._sections.pop(title)) for title in titles if title in self._sections]

    def rest(self, drawn: Drawings) -> list[str]:
        """Return the other sections in the order of the layout."""
        written = []
        for title, one in self._sections.items():
            if title == "Overlap":
                written.append(section(one, overlap_matrices(self._report)))
            elif title == "Copies":
                written.append(section(one, self._copies(drawn)))
            else:
                written.append(self._section(one))
        return written

    def _section(self, one: Section) -> str:
        if not any(isinstance(block, Bars) for block in one.blocks):
            return section(one)
        first, *others = one.blocks
        drawn = self._chart("bars", html_charts.bars(one), "Where the forward's time went, and what is ideal")
        return titled(one.title, one.about, "".join((*blocks((first,)), drawn, *blocks(others))))

    def _copies(self, drawn: Drawings) -> str:
        charts = self._chart("sizes", copy_series.sizes(self._report), "Pieces by size")
        if drawn.rates:
            rates = copy_series.rates(drawn.rates, self._report, drawn.ceilings)
            words = "Rate of a copy by its size, with the fitted line and the ceiling"
            if rates["left_out"]:
                words += "; copies that do not cross the link are in the table"
            charts += self._chart("rates", rates, words)
        return f'<div class="pair">{charts}</div>'

    def _chart(self, kind: str, drawn: object, title: str) -> str:
        self._data[kind] = drawn
        return chart(kind, kind, title)


def chart(kind: str, key: str, title: str, extra: str = "") -> str:
    """Return the place of a chart: ``kind`` says which script draws it, ``key`` which data."""
    return (
        f'<figure class="chart {kind}" id="chart-{key}"><figcaption>{escaped(title)}</figcaption>{extra}'
        f'<div class="canvas" data-chart="{kind}" data-key="{key}" role="img" aria-label="{escaped(title)}"></div>'
        "</figure>\n"
    )


def header(page: Page) -> str:
    """Return the top of a page: the verdict as its heading, and what was looked at."""
    first, *others = page.verdict
    verdict = "".join(f"<p>{line(one)}</p>" for one in others)
    about = "".join(f"<li>{line(one)}</li>" for one in page.header)
    return f'<header><h1>{line(first)}</h1>{verdict}<ul class="about">{about}</ul></header>\n'


def contents(sections: Sequence[str]) -> str:
    """Return links to sections that are written already."""
    titles = [part.partition("<h2>")[2].partition("</h2>")[0] for part in sections]
    links = "".join(f'<a href="#{slug(title)}">{title}</a>' for title in titles if title)
    return f'<nav aria-label="Sections">{links}</nav>\n'
