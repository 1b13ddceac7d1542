"""Integer columns of a table, decoded from the pages of the SQLite file a block of rows at a time.

SQLite hands out one value per call; this decodes a whole column of a block of pages with a few array operations, which
takes half the time that SQLite needs to step over the same rows. It answers only for what an export's event tables
look like: a rowid table whose wanted columns hold integers or NULL, in rows that fit on their page. At the first page
or row that is anything else it raises :class:`UnusualPageError`, and the caller asks SQLite, which also is the judge of
damaged files. Source: "Database File Format", sqlite.org/fileformat2.html, sections 1.6 and 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from traceview.nsys.pages import PAD, PageFile, UnusualPageError, leaf_pages

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from traceview.model import Ints

    Bytes = NDArray[np.uint8]

_BLOCK_BYTES = 2 << 20
"""Pages decoded at once: enough to make numpy's fixed costs small, little enough to stay in the processor's cache."""

_LEAF, _LEAF_HEADER = 13, 8
_SMALLEST_OVERFLOW_SPARE = 35
"""A row of more than the usable page size less this continues on other pages (section 1.6)."""

_NULL, _ZERO, _ONE = 0, 8, 9
_UNKNOWN = 255


def _stored_sizes() -> Bytes:
    """Return the bytes that a value of each serial type takes; of those that need a longer header, ``_UNKNOWN``."""
    sizes = np.full(256, _UNKNOWN, dtype=np.uint8)
    sizes[:10] = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
    sizes[12:128] = (np.arange(12, 128) - 12) // 2
    return sizes


_SIZES = _stored_sizes()
_NO_INTEGER = np.array([kind == 7 or kind > _ONE for kind in range(256)], dtype=bool)


@dataclass(frozen=True)
class StoredTable:
    """Where a table lies in its file, and the names of its columns in the order in which rows hold them."""

    root: int
    columns: tuple[str, ...]
    integers: frozenset[str]
    """columns that hold integers as they are: declared so, and not the row number"""


class Block(NamedTuple):
    """Some rows of a table."""

    rows: int
    columns: dict[str, Ints]
    """int64 arrays of that length"""
    share: float
    """about which part of the table they are, 0 where nobody knows"""


def stored_table(connection: sqlite3.Connection, table: str) -> StoredTable | None:
    """Return where a table lies, or None where its rows are no plain records: a virtual table and the like."""
    query = "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?"
    row = connection.execute(query, (table,)).fetchone()
    described = connection.execute("SELECT name, type, pk, hidden FROM pragma_table_xinfo(?)", (table,)).fetchall()
    if row is None or not row[0] or any(hidden for *_, hidden in described):
        return None
    integers = {name for name, kind, key, _ in described if "INT" in kind.upper() and not key}
    return StoredTable(row[0], tuple(name for name, *_ in described), frozenset(integers))


def decoded_blocks(path: Path, table: StoredTable, wanted: Mapping[str, int]) -> Iterator[Block]:
    """Yield blocks of rows in row order, with the given value of a wanted column where it is NULL.

    Raises ``UnusualPageError`` where only SQLite can tell what a page or a row means.
    """
    if not table.integers.issuperset(wanted):
        raise UnusualPageError
    places = {place: wanted[name] for place, name in enumerate(table.columns) if name in wanted}
    with path.open("rb") as file:
        pages = PageFile(file)
        numbers = leaf_pages(pages, table.root)
        step = max(_BLOCK_BYTES // pages.size, 1)
        for first in range(0, len(numbers), step):
            buffer = pages.read(numbers[first : first + step])
            try:
                rows = _Rows(buffer, pages, len(table.columns))
                columns = {table.columns[place]: values for place, values in rows.decode(places)}
            except IndexError:
                # a row that claims to go on behind the last page
                raise UnusualPageError from None
            yield Block(rows.count, columns, min(step, len(numbers) - first) / len(numbers))


class _Rows:
    """The rows on some leaf pages that lie one after the other in a buffer."""

    def __init__(self, buffer: Bytes, pages: PageFile, width: int) -> None:
        self._buffer = buffer
        # unaligned big-endian numbers at every offset of the buffer, so that one gather loads a whole column
        self._words = np.ndarray(len(buffer) - PAD + 1, dtype=">i8", buffer=buffer.data, strides=(1,))
        page = np.arange(0, len(buffer) - PAD, pages.size)
        if np.any(buffer[page] != _LEAF):
            raise UnusualPageError
        count = self._pair(page + 3)
        if int(count.max(initial=0)) * 2 + _LEAF_HEADER > pages.usable:
            raise UnusualPageError
        origin = np.repeat(page, count)
        place = np.arange(len(origin)) - np.repeat(np.cumsum(count) - count, count)
        cell = self._pair(origin + _LEAF_HEADER + 2 * place)
        if len(cell) and (int(cell.min()) < _LEAF_HEADER or int(cell.max()) > pages.usable - 4):
            raise UnusualPageError
        self._find_records(origin + cell, width)
        self._check_extent(origin, pages)

    @property
    def count(self) -> int:
        """Return how many rows there are."""
        return len(self._record)

    def _pair(self, at: Ints) -> Ints:
        """Return the two-byte numbers at some offsets."""
        return (self._buffer[at].astype(np.int64) << 8) | self._buffer[at + 1]

    def _find_records(self, cell: Ints, width: int) -> None:
        """Find each cell's header of serial types and its first value; the cell begins with two varints."""
        first, second = self._buffer[cell], self._buffer[cell + 1]
        long = first >= 128
        payload = first.astype(np.int64)
        at = cell + 1
        if long.any():
            if np.any(second[long] >= 128):
                raise UnusualPageError
            payload = np.where(long, ((first & 127).astype(np.int64) << 7) | second, first)
            at = at + long
        self._record = at + self._varint_lengths(at)
        self._end = self._record + payload
        if np.any(self._buffer[self._record] != width + 1) or width > 126:
            raise UnusualPageError
        self._width = width

    def _varint_lengths(self, at: Ints) -> Ints:
        """Return how many bytes each varint takes: up to the first byte below 128, at most 9."""
        length = np.ones(len(at), dtype=np.int64)
        more = np.flatnonzero(self._buffer[at] >= 128)
        for place in range(1, 9):
            if not len(more):
                break
            length[more] += 1
            more = more[self._buffer[at[more] + place] >= 128]
        return length

    def _check_extent(self, origin: Ints, pages: PageFile) -> None:
        """Raise unless every row ends on its own page."""
        if not len(origin):
            return
        payload = self._end - self._record
        if int(payload.max()) > pages.usable - _SMALLEST_OVERFLOW_SPARE or np.any(self._end - origin > pages.usable):
            raise UnusualPageError

    def decode(self, places: Mapping[int, int]) -> Iterator[tuple[int, Ints]]:
        """Yield the columns at some places in ascending order, with the given value for NULL."""
        at = self._record + (self._width + 1)
        for place in range(max(places) + 1):
            kinds = self._buffer[self._record + (1 + place)]
            kind = int(kinds[0]) if len(kinds) and (kinds == kinds[0]).all() else None
            sizes = _SIZES[kinds] if kind is None else _SIZES[kind]
            if (int(sizes.max(initial=0)) if kind is None else int(sizes)) == _UNKNOWN:
                raise UnusualPageError
            if place in places:
                yield place, self._values(at, kinds, kind, sizes, places[place])
            at = at + sizes
        if np.any(at > self._end):
            raise UnusualPageError

    def _values(self, at: Ints, kinds: Bytes, kind: int | None, sizes: Bytes | np.uint8, null: int) -> Ints:
        """Return the values at some offsets; ``kind`` is the serial type where all rows have the same."""
        if np.any(_NO_INTEGER[kinds if kind is None else kind]):
            raise UnusualPageError
        if kind in (_NULL, _ZERO, _ONE):
            return np.full(len(at), null if kind == _NULL else kind - _ZERO, dtype=np.int64)
        values = self._words[at].astype(np.int64)
        if kind is not None:
            values >>= 64 - 8 * int(sizes)
            return values
        values >>= np.minimum(64 - 8 * np.asarray(sizes).astype(np.int64), 63)
        if kinds.min(initial=_ONE) == _NULL or kinds.max(initial=_NULL) >= _ZERO:
            values = np.select([kinds == _NULL, kinds >= _ZERO], [null, kinds - _ZERO], values)
        return values
