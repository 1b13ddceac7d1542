"""Draws the report for a terminal: at most 100 columns, colour only where asked for."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from traceview.render.layout import layout
from traceview.render.tables import BAD, CODE, GOOD, MUTED, NAME, PLAIN, STRONG, Bar, Bars, Entry, Table, spark
from traceview.units import milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import JustifyMethod, RenderableType

    from traceview.render.tables import Block, Line, Section
    from traceview.report import Report

WIDEST = 100
NARROWEST = 80
INDENT = 2
GAP = 2
PROSE_WIDTHS = ((30, 30), (30, 12), (12, 12))
"""up to which width a column of prose is left alone, and what a longer one needs; the next where there is no room"""

_ROLES = {PLAIN: "", NAME: "cyan", CODE: "cyan", STRONG: "bold", MUTED: "dim", GOOD: "green", BAD: "bold red"}
_CATEGORIES = {
    "compute": "green",
    "load_copy": "yellow",
    "load_gap": "bright_yellow",
    "stream_queue": "magenta",
    "engine_queue": "bright_magenta",
    "sync": "red",
    "implicit_sync": "bright_red",
    "submit": "blue",
    "host": "bright_blue",
    "sm_busy": "cyan",
    "launch": "bright_black",
}
_LETTERS = {
    "stream_queue": "q",
    "engine_queue": "e",
    "sync": "s",
    "implicit_sync": "i",
    "submit": "u",
    "host": "h",
    "sm_busy": "m",
}
_BLOCKS = {"compute": "█", "load_copy": "▓", "load_gap": "▒", "launch": "·"} | _LETTERS
_ASCII_BLOCKS = {"compute": "#", "load_copy": "=", "load_gap": "-", "launch": "."} | _LETTERS
_SPARKS, _ASCII_SPARKS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"
_ASCII = str.maketrans({"·": "|", "…": "..", "µ": "u", "→": "->"})


def render(report: Report, *, colour: bool = False, width: int = WIDEST, ascii_only: bool = False) -> str:
    """Return the report as text of at most ``width`` columns, and never more than 100.

    ``colour`` adds ANSI colours; ``ascii_only`` is for terminals that cannot show block characters: bars are drawn with
    ASCII and names outside it are escaped.
    """
    columns = max(NARROWEST, min(width, WIDEST))
    page = layout(report)
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


class _Pen:
    """Turns blocks into what rich prints, for one width and one set of characters."""

    def __init__(self, columns: int, ascii_only: bool) -> None:
        self.columns = columns
        self.ascii_only = ascii_only
        self.blocks: Mapping[str, str] = _ASCII_BLOCKS if ascii_only else _BLOCKS
        self.sparks = _ASCII_SPARKS if ascii_only else _SPARKS

    def block(self, block: Block) -> RenderableType:
        if isinstance(block, Table):
            return self.table(block)
        if isinstance(block, Bars):
            return self.bars(block)
        if isinstance(block, Entry):
            return self.entry(block)
        return self.line(block)

    def line(self, line: Line, keyed: bool = False) -> Text:
        """Return a line as styled text, nothing of it markup; ``keyed`` puts a bar's glyph before a category."""
        text = Text(overflow="fold")
        for part in line:
            if keyed and part.role in self.blocks:
                text.append(f"{self.blocks[part.role]} ", _CATEGORIES[part.role])
            words = f"`{part.text}`" if part.role == CODE else part.text
            text.append(self.plain(words), _ROLES.get(part.role, ""))
            if part.counts:
                text.append(spark(part.counts, self.sparks), _ROLES[PLAIN])
        return text

    def title(self, section: Section) -> Text:
        text = Text(self.plain(section.title), "bold")
        if section.about:
            text.append(self.plain(f"  {section.about}"), "dim not bold")
        return text

    def entry(self, entry: Entry) -> RenderableType:
        grid = RichTable.grid(padding=0)
        grid.add_column()
        grid.add_row(self.line(entry.head))
        for below in entry.below:
            grid.add_row(Padding(self.line(below), (0, 0, 0, 2)))
        return grid

    def table(self, table: Table) -> RichTable:
        drawn = RichTable(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim", show_edge=False)
        cells = [[self.line(cell, keyed=True) for cell in row] for row in table.rows]
        kept, widths = self._fitting(table, cells)
        fits = self._needed(widths, kept) <= self.columns - INDENT
        for index in kept:
            column = table.columns[index]
            justify: JustifyMethod = "right" if column.right else "left"
            one_line = fits and self._natural(table, cells, index) <= widths[index]
            drawn.add_column(self.plain(column.title), justify=justify, no_wrap=one_line, overflow="fold")
        for row in cells:
            drawn.add_row(*(row[index] for index in kept))
        return drawn

    def _fitting(self, table: Table, cells: list[list[Text]]) -> tuple[list[int], list[int]]:
        """Return the columns to draw and their needs: first prose narrows, then minor columns go, last one first."""
        kept = list(range(len(table.columns)))
        natural = [self._natural(table, cells, index) for index in kept]
        for alone, least in PROSE_WIDTHS:
            pairs = zip(natural, table.columns, strict=True)
            widths = [least if column.wraps and width > alone else width for width, column in pairs]
            if self._needed(widths, kept) <= self.columns - INDENT:
                return kept, widths
        for index in reversed(range(len(widths))):
            if self._needed(widths, kept) > self.columns - INDENT and table.columns[index].minor:
                kept.remove(index)
        return kept, widths

    def _natural(self, table: Table, cells: list[list[Text]], index: int) -> int:
        return max(len(table.columns[index].title), *(row[index].cell_len for row in cells))

    def _needed(self, widths: list[int], kept: list[int]) -> int:
        return sum(widths[index] + GAP for index in kept) - GAP

    def bars(self, bars: Bars) -> RichTable:
        longest = max((bar.total_ns for bar in bars.bars), default=0)
        room = self.columns - INDENT - max(len(bar.label) for bar in bars.bars) - 16
        drawn = RichTable.grid(padding=(0, 2, 0, 0))
        for bar in bars.bars:
            cost = f"{milliseconds(bar.total_ns)} ms"
            drawn.add_row(Text(bar.label, "dim"), self._bar(bar, longest, room), Text(cost))
        return drawn

    def _bar(self, bar: Bar, longest: int, room: int) -> Text:
        """Return a bar whose parts end where their running total does, so that rounding never adds up."""
        text = Text(no_wrap=True)
        ended = total = 0
        for category, ns in bar.parts:
            total += ns
            end = round(total * room / longest) if longest else 0
            text.append(self.blocks[category] * (end - ended), _CATEGORIES[category])
            ended = end
        return text

    def plain(self, text: str) -> str:
        """Return ``text`` as it is, or in ASCII where the terminal knows nothing else."""
        return text.translate(_ASCII).encode("ascii", "backslashreplace").decode() if self.ascii_only else text
