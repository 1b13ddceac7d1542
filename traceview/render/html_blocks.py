"""Writes the blocks of a laid-out report as HTML; everything from a trace is escaped text, never markup."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from traceview.render.tables import CODE, NAME, Bars, Entry, Table, spark
from traceview.render.verdict import PHRASES
from traceview.units import duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.render.tables import Block, Line, Part, Section

_SPARKS = " ▁▂▃▄▅▆▇█"


def escaped(text: str) -> str:
    """Return text as HTML in which nothing is markup; safe in an attribute in double quotes too."""
    return html.escape(text, quote=True)


def slug(text: str) -> str:
    """Return an element id for a title of ours."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def section(laid_out: Section, extra: str = "") -> str:
    """Return a section with its heading; ``extra`` is HTML that comes before its blocks."""
    return titled(laid_out.title, laid_out.about, extra + "".join(blocks(laid_out.blocks)))


def titled(title: str, about: str, inner: str) -> str:
    """Return a section of the page."""
    note = f'<p class="about">{escaped(about)}</p>' if about else ""
    return f'<section id="{slug(title)}"><h2>{escaped(title)}</h2>{note}{inner}</section>\n'


def blocks(of: Iterable[Block]) -> list[str]:
    """Return each block as HTML; the parts of a bar are only summed up, since a chart and a table show them."""
    return [_block(block) for block in of]


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return table(block)
    if isinstance(block, Bars):
        totals = ", ".join(f"{escaped(bar.label)} {duration(bar.total_ns)}" for bar in block.bars)
        return f'<p class="hidden">{totals}</p>'
    if isinstance(block, Entry):
        below = "".join(f"<p>{line(one)}</p>" for one in block.below)
        return f'<article class="entry"><h3>{line(block.head)}</h3>{below}</article>'
    return f"<p>{line(block)}</p>"


def line(of: Line) -> str:
    """Return a line's parts, each marked with its role."""
    return "".join(_part(part) for part in of)


def _part(part: Part) -> str:
    text = escaped(part.text)
    if part.counts:
        text += f'<span class="spark" aria-hidden="true">{spark(part.counts, _SPARKS)}</span>'
    if part.role in PHRASES:
        return f'<span class="category"><i class="swatch c-{part.role}"></i>{text}</span>'
    if part.role in (NAME, CODE):
        return f'<code class="{part.role}"><bdi>{text}</bdi></code>'
    return text if part.role == "plain" else f'<span class="{part.role}">{text}</span>'


def table(of: Table) -> str:
    """Return a table that scrolls sideways by itself where the page is narrow."""
    marks = [_marks(column.right, column.minor, column.wraps) for column in of.columns]
    titles = [escaped(column.title) for column in of.columns]
    heads = [f'<th scope="col"{mark}>{title}</th>' for title, mark in zip(titles, marks, strict=True)]
    rows = [
        "".join(f"<td{mark}>{line(cell)}</td>" for cell, mark in zip(cells, marks, strict=True)) for cells in of.rows
    ]
    return plain_table(heads, rows)


def plain_table(heads: Sequence[str], rows: Sequence[str], *, classes: str = "", caption: str = "") -> str:
    """Return a table from heads and rows that are HTML already."""
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    title = f"<caption>{escaped(caption)}</caption>" if caption else ""
    named = f' class="{classes}"' if classes else ""
    head = "".join(heads)
    return (
        f'<div class="scrolls"><table{named}>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>\n'
    )


def _marks(right: bool, minor: bool, wraps: bool) -> str:
    words = [word for word, wanted in (("right", right), ("minor", minor), ("wraps", wraps)) if wanted]
    return f' class="{" ".join(words)}"' if words else ""
