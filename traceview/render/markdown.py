"""Writes the report as GitHub Markdown for a pull-request comment: compact, no colour, names inert."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traceview.render.layout import layout
from traceview.render.tables import BAD, CODE, GOOD, NAME, STRONG, Bars, Entry, Table, spark
from traceview.render.verdict import PHRASES
from traceview.units import duration

if TYPE_CHECKING:
    from traceview.render.tables import Block, Line, Part, Section
    from traceview.report import Report

_SPARKS = "·▁▂▃▄▅▆▇█"
_SPECIAL = re.compile(
    r"[\\`*_{}\[\]~$]"  # emphasis, code, links, maths
    r"|[&<>|]"  # HTML, ends of a table's cells
    r"|@(?=\w)|\#(?=\d)|:(?=//)|(?<=www)\.",  # mentions, issues, bare links
    re.IGNORECASE,
)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_BREAK = "&#8203;"
"""Zero-width space: shown as nothing, but GitHub no longer sees a mention, an issue or a link."""
_OPENING = re.compile(r"^([-+#=]|\d+[.)](?=\s|$))")
"""What would make a heading, a rule or a list of a line that begins with it."""


def render(report: Report) -> str:
    """Return the report as Markdown: the verdict, findings and the forward open, all details folded.

    Whatever has a meaning to Markdown, HTML or GitHub in a name or message is escaped.
    """
    page = layout(report)
    paragraphs = [_together(page.verdict), _together(page.header)]
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


def escaped(text: str) -> str:
    """Return prose with everything escaped that Markdown, HTML or GitHub would read as more than text."""
    return _SPECIAL.sub(lambda found: _escape(found.group()), text)


def _escape(character: str) -> str:
    if character in _ENTITIES:
        return _ENTITIES[character]
    return character + _BREAK if character in "@#:." else f"\\{character}"


def code(text: str) -> str:
    """Return a name as code, in which GitHub sees no mention; where it would end a span or a table's cell, as HTML."""
    return f"<code>{escaped(text)}</code>" if "`" in text or "|" in text else f"`{text}`"


def _section(section: Section) -> list[str]:
    """Return a section's paragraphs; lines that follow each other are one paragraph, entries one list."""
    about = f" ({escaped(section.about)})" if section.about else ""
    paragraphs = [f"**{escaped(section.title)}**{about}"]
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


def _together(lines: tuple[Line, ...]) -> str:
    return "<br>\n".join(_opened(line) for line in lines)


def _opened(line: Line) -> str:
    """Return a line that may begin a paragraph or an entry of a list."""
    return _OPENING.sub(_escaped_opening, _line(line))


def _escaped_opening(found: re.Match[str]) -> str:
    opening = found.group()
    return f"{opening[:-1]}\\{opening[-1]}"


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    if isinstance(block, Bars):
        return _bars(block)
    if isinstance(block, Entry):
        return "\n".join([f"- {_opened(block.head)}", *(f"  - {_opened(below)}" for below in block.below)])
    return _opened(block)


def _line(line: Line) -> str:
    return "".join(_part(part) for part in line)


def _part(part: Part) -> str:
    text = part.text
    if part.role in (NAME, CODE) or part.role in PHRASES:
        return code(text)
    written = escaped(text)
    if part.role in (STRONG, GOOD, BAD) and (words := written.strip()):
        written = written.replace(words, f"**{words}**")
    return written + spark(part.counts, _SPARKS) if part.counts else written


def _table(table: Table) -> str:
    heads = " | ".join(escaped(column.title) for column in table.columns)
    rules = " | ".join("---:" if column.right else "---" for column in table.columns)
    rows = [" | ".join(_line(cell) for cell in cells) for cells in table.rows]
    return "\n".join(f"| {text} |" for text in (heads, rules, *rows))


def _bars(bars: Bars) -> str:
    """Return what the bars add up to; the table below has the parts."""
    return ", ".join(f"{escaped(bar.label)} **{duration(bar.total_ns)}**" for bar in bars.bars)
