"""Writes the report as GitHub Markdown for a pull-request comment: compact, no colour, names inert."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceview.render.layout import layout
from traceview.render.tables import BAD, CODE, NAME, STRONG, Bars, Entry, Table, spark
from traceview.render.verdict import PHRASES
from traceview.units import duration

if TYPE_CHECKING:
    from traceview.render.tables import Block, Line, Part, Section
    from traceview.report import Report

_SPARKS = "·▁▂▃▄▅▆▇█"
_SPECIAL = re.compile(r"([\\`*_{}\[\]~])")
_LEADING = re.compile(r"^(\s*\d*)([-+#=.)])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"})
_LINKED = re.compile(r"@(?=\w)|#(?=\d)|(?<=\w):(?=//)|(?<=www)\.(?=\w)", re.IGNORECASE)
_BREAK = "&#8203;"
"""Zero-width space: shown as nothing, but GitHub no longer sees a mention, an issue or a link."""


def render(report: Report) -> str:
    """Return the report as Markdown; what has a meaning to GitHub in a name or message is escaped."""
    page = layout(report)
    paragraphs = ["<br>\n".join(_line(sentence) for sentence in page.verdict)]
    paragraphs.append("<br>\n".join(_line(sentence) for sentence in page.header))
    for section in page.sections:
        paragraphs.append(_title(section))
        paragraphs += _blocks(section)
    return "\n\n".join(paragraphs) + "\n"


def escaped(text: str) -> str:
    """Return prose with everything escaped that Markdown, HTML or GitHub would read as more than text."""
    text = _LEADING.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", text))
    return _LINKED.sub(lambda found: found.group() + _BREAK, text.translate(_ENTITIES))


def code(text: str) -> str:
    """Return a name as code, in which GitHub sees no mention; where it would end a span or a table's cell, as HTML."""
    return f"<code>{escaped(text)}</code>" if "`" in text or "|" in text else f"`{text}`"


def _title(section: Section) -> str:
    about = f"\n\n{escaped(section.about)}" if section.about else ""
    return f"#### {escaped(section.title)}{about}"


def _blocks(section: Section) -> list[str]:
    """Return a section's blocks; lines that follow each other are one paragraph, entries one list."""
    paragraphs: list[str] = []
    before: type | None = None
    for block in section.blocks:
        text = _block(block)
        if isinstance(block, Entry) and before is Entry:
            paragraphs[-1] += f"\n{text}"
        elif isinstance(block, tuple) and before is tuple:
            paragraphs[-1] += f"<br>\n{text}"
        else:
            paragraphs.append(text)
        before = type(block)
    return paragraphs


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Bars):
        return _bars(block)
    if isinstance(block, Entry):
        return "\n".join([f"- {_line(block.head)}", *(f"  - {_line(below)}" for below in block.below)])
    return _line(block)


def _line(line: Line) -> str:
    return "".join(_part(part) for part in line)


def _part(part: Part) -> str:
    text = part.text
    if part.role in (NAME, CODE) or part.role in PHRASES:
        return code(text)
    written = escaped(text)
    if part.role in (STRONG, BAD) and text.strip():
        written = f"**{written.strip()}**"
    return written + spark(part.counts, _SPARKS) if part.counts else written


def _table(table: Table) -> str:
    heads = " | ".join(escaped(column.title) for column in table.columns)
    rules = " | ".join("---:" if column.right else "---" for column in table.columns)
    rows = [" | ".join(_line(cell) for cell in cells) for cells in table.rows]
    return "\n".join(f"| {text} |" for text in (heads, rules, *rows))


def _bars(bars: Bars) -> str:
    """Return what the bars add up to; the table below has the parts."""
    return ", ".join(f"{escaped(bar.label)} **{duration(bar.total_ns)}**" for bar in bars.bars)
