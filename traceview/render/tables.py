"""What a page of the report is made of: sections of lines, tables and bars, whatever the format they end in.

Text carries a role, not a colour: ``name`` is data from the trace, ``code`` is what to type, the names of the
accounting's categories stand for themselves, and each renderer decides how it shows them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceview.render.shown import shown
from traceview.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

PLAIN, NAME, CODE, STRONG, MUTED, GOOD, BAD = "plain", "name", "code", "strong", "muted", "good", "bad"


@dataclass(frozen=True)
class Part:
    """A run of text in one role: one of those above, or a category of the accounting."""

    text: str
    role: str = PLAIN
    counts: tuple[int, ...] = ()
    """drawn after the text as one small bar each, see :func:`spark`"""


Line = tuple[Part, ...]


@dataclass(frozen=True)
class Column:
    """The head of a column: numbers stand to the right, prose wraps, ``minor`` ones go first where room is short."""

    title: str
    right: bool = False
    minor: bool = False
    wraps: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of cells, one per column; each cell is a line."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True)
class Bar:
    """One bar of parts that follow each other; ``parts`` are (category, ns)."""

    label: str
    parts: tuple[tuple[str, int], ...]

    @property
    def total_ns(self) -> int:
        """Return how long the bar is."""
        return sum(ns for _, ns in self.parts)


@dataclass(frozen=True)
class Bars:
    """Bars on one scale, the longest over the full width."""

    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Entry:
    """One thing with what belongs to it below."""

    head: Line
    below: tuple[Line, ...]


Block = Line | Table | Bars | Entry


@dataclass(frozen=True)
class Section:
    """A title, what it is about in a few words, and the blocks under it."""

    title: str
    about: str
    blocks: tuple[Block, ...]
    detail: bool = True
    """whether it may be folded where a format can"""


@dataclass(frozen=True)
class Page:
    """The report laid out: the verdict, what was looked at, then sections in the order in which they are read."""

    verdict: tuple[Line, ...]
    header: tuple[Line, ...]
    sections: tuple[Section, ...]


def line(*parts: str | Part) -> Line:
    """Return a line of parts; a bare string is plain text of our own."""
    return tuple(part if isinstance(part, Part) else Part(part) for part in parts)


def name(text: str, longest: int = 60) -> Part:
    """Return a name from the trace as a harmless part of at most ``longest`` characters."""
    return Part(shown(text, longest), NAME)


def row(*cells: str | Part | Line) -> tuple[Line, ...]:
    """Return a table's row; a cell may be a string, a part or a line."""
    return tuple(cell if isinstance(cell, tuple) else line(cell) for cell in cells)


def left_out(number: int, noun: str, plural: str | None = None) -> tuple[Line, ...]:
    """Return a line that says how much only the JSON has, or none where nothing is left out."""
    said = f"{counted(number, f'more {noun}', plural and f'more {plural}')} with --format json"
    return (line(Part(said, MUTED)),) if number > 0 else ()


def spark(counts: Iterable[int], glyphs: str) -> str:
    """Return one character per count: the first glyph for none, then taller ones by the logarithm of the count."""
    counts = tuple(counts)
    tallest = math.log1p(max(counts, default=0)) or 1.0
    steps = len(glyphs) - 1
    return "".join(glyphs[math.ceil(math.log1p(number) / tallest * steps)] for number in counts)


def without_empty_columns(table: Table) -> Table:
    """Return the table without the columns in which no row says anything."""
    kept = [
        index
        for index in range(len(table.columns))
        if any(part.text or part.counts for cells in table.rows for part in cells[index])
    ]
    return Table(
        tuple(table.columns[index] for index in kept),
        tuple(tuple(cells[index] for index in kept) for cells in table.rows),
    )
