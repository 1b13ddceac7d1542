"""Draws any page, whatever it was laid out from: for a terminal, or as GitHub Markdown."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding

from traceview.render.markdown import _section, _together, escaped
from traceview.render.text import INDENT, NARROWEST, WIDEST, _Pen

if TYPE_CHECKING:
    from traceview.render.tables import Page


def draw_text(page: Page, *, colour: bool = False, width: int = WIDEST, ascii_only: bool = False) -> str:
    """Return a page as text of at most ``width`` columns, and never more than 100."""
    columns = max(NARROWEST, min(width, WIDEST))
    pen = _Pen(columns, ascii_only)
    console = Console(
        file=io.StringIO(),
        width=columns,
        height=columns,  # rich asks the environment for both where one is missing
        color_system="standard" if colour else None,
        force_terminal=colour,
        no_color=not colour,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    with console.capture() as captured:
        for sentence in (*page.verdict, *page.header):
            console.print(pen.line(sentence))
        for section in page.sections:
            console.print()
            console.print(pen.title(section))
            for block in section.blocks:
                console.print(Padding(pen.block(block), (0, 0, 0, INDENT)))
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def draw_markdown(page: Page) -> str:
    """Return a page as Markdown for a pull-request comment; sections of details are folded."""
    paragraphs = [_together(lines) for lines in (page.verdict, page.header) if lines]
    for section in page.sections:
        if not section.detail:
            paragraphs += _section(section)
    details = [section for section in page.sections if section.detail]
    if details:
        titles = ", ".join(section.title.lower() for section in details)
        paragraphs.append(f"<details><summary>{escaped(titles)}</summary>")
        for section in details:
            paragraphs += _section(section)
        paragraphs.append("</details>")
    return "\n\n".join(paragraphs) + "\n"
