"""Columns of an export's tables as arrays, whatever the version calls the table and whichever columns it has.

ADBC's SQLite driver hands out whole columns as Arrow batches, in a third of the time that Python's own module takes for
them row by row. Small exports, for which loading the driver does not pay, and what it cannot type are read that slower
way, which can also say what is wrong.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.errors import InputError
from traceview.nsys.database import EXPORT_AGAIN, readable
from traceview.nsys.schema import REQUIRED
from traceview.nsys.streaming import BATCH_ROWS, Block, UntypedError, select, stream_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from traceview.model import Flags, Ints
    from traceview.nsys.database import Database
    from traceview.nsys.schema import Field, Source

    Table = dict[str, Ints]

STREAMED_BYTES = 1 << 20
"""Size of an export from which loading the driver that hands out whole columns pays."""

_SPARE = 1.1
"""Room for a column is made for this many times the rows that it seems to have."""

_NARROW: tuple[Any, ...] = (np.int8, np.int16, np.int32)


def read_columns(database: Database, source: Source, keep: Callable[[Table], Flags] | None = None) -> Table:
    """Return the fields of a source as arrays of one length, in row order; of length 0 where no table of it exists.

    Times, sizes and serialised ids are int64, fields of small numbers the narrowest integers that hold them. ``keep``
    is asked, for a block of rows, which of them to return. Raises ``InputError`` where the file is damaged, a value
    is no integer, or a column is missing that every version has.
    """
    table = next((name for name in source.tables if name in database.tables), None)
    if table is None:
        return {name: np.empty(0, dtype=np.int64) for name in source.fields}
    strict = {name: field for field in source.fields.values() if field.default == REQUIRED for name in field.columns}
    database.require(
        table, (*strict, *(name for field in source.fields.values() if field.needed for name in field.columns))
    )
    present = database.tables[table]
    held = {name: field for name, field in source.fields.items() if field.columns and present >= set(field.columns)}
    defaults = {column: field.default for field in held.values() for column in field.columns}

    def collect(blocks: Iterator[Block]) -> Table:
        return _collect(_complete(database, table, blocks, strict), source, held, keep)

    if database.size >= STREAMED_BYTES:
        with suppress(UntypedError):
            return collect(stream_table(database, table, defaults))
    _check_types(database, table, defaults)
    with readable(database.path, table):
        return collect(_selected(database, table, defaults))


def _complete(database: Database, table: str, blocks: Iterable[Block], strict: Mapping[str, Field]) -> Iterator[Block]:
    """Yield the blocks; raise ``InputError`` where a row lacks a value that every row has, or has an impossible one."""
    for block in blocks:
        for name, field in strict.items():
            low, high = _bounds(block.columns[name])
            if low == REQUIRED:
                raise InputError(f"{database.path}: table {table} has a row without {name}", EXPORT_AGAIN)
            if field.within and not field.within[0] <= low <= high <= field.within[1]:
                wrong = low if low < field.within[0] else high
                raise InputError(f"{database.path}: table {table} has a row with {name} {wrong}", EXPORT_AGAIN)
        yield block


def _bounds(values: Ints) -> tuple[int, int]:
    return (int(values.min()), int(values.max())) if len(values) else (0, 0)


def _selected(database: Database, table: str, defaults: Mapping[str, int]) -> Iterator[Block]:
    cursor = database.connection.execute(select(table, defaults))
    while rows := cursor.fetchmany(BATCH_ROWS):
        flat = np.fromiter(chain.from_iterable(rows), dtype=np.int64, count=len(rows) * max(len(defaults), 1))
        yield Block(len(rows), dict(zip(defaults, flat.reshape(len(rows), -1).T, strict=False)), 0.0)


def _check_types(database: Database, table: str, columns: Iterable[str]) -> None:
    """Raise ``InputError`` where a column holds anything but integers and NULL."""
    for name in columns:
        query = f"""SELECT typeof("{name}") FROM "{table}" WHERE typeof("{name}") NOT IN ('integer', 'null') LIMIT 1"""  # noqa: S608
        for (kind,) in database.rows(query):
            raise InputError(
                f"{database.path}: table {table} holds a value that is no integer: {kind} in column {name}",
                EXPORT_AGAIN,
            )


def _collect(
    blocks: Iterable[Block],
    source: Source,
    held: Mapping[str, Field],
    keep: Callable[[Table], Flags] | None,
) -> Table:
    """Return the fields of all blocks, each block reduced to the rows that are kept."""
    joined = {name: _Column() for name in source.fields}
    for block in blocks:
        table = {name: _field(block, field, name in held) for name, field in source.fields.items()}
        if keep is not None:
            kept = keep(table)
            table = {name: values[kept] for name, values in table.items()}
        for name, values in table.items():
            joined[name].append(values, block.share)
    return {name: column.values() for name, column in joined.items()}


class _Column:
    """A column that grows by blocks inside one piece of memory: parts to be joined later would stand there twice."""

    def __init__(self) -> None:
        self._room: Ints = np.empty(0, dtype=_NARROW[0])
        self._used = 0

    def append(self, values: Ints, share: float) -> None:
        """Add a block; ``share`` is about which part of the whole it is, 0 where nobody knows."""
        needed = self._used + len(values)
        kind = np.promote_types(self._room.dtype, values.dtype)
        if needed > len(self._room) or kind != self._room.dtype:
            expected = int(len(values) / share * _SPARE) if share and not self._used else 0
            room = np.empty(
                max(expected, len(self._room), needed if kind != self._room.dtype else int(needed * _SPARE)), dtype=kind
            )
            room[: self._used] = self._room[: self._used]
            self._room = room
        self._room[self._used : needed] = values
        self._used = needed

    def values(self) -> Ints:
        """Return all blocks as one array, giving back what room is left; int64 where there was no row."""
        if not self._used:
            return np.empty(0, dtype=np.int64)
        self._room.resize(self._used, refcheck=False)
        return self._room


def _field(block: Block, field: Field, held: bool) -> Ints:
    """Return one field of a block of rows."""
    rows, columns, _ = block
    parts = [columns[name] for name in field.columns] if held else [np.full(rows, field.default, dtype=np.int64)]
    if len(parts) == 1:
        return _narrowed(parts[0], field)
    total = np.zeros(rows, dtype=np.int64)
    for values, shift in zip(parts, field.shifts, strict=True):
        total += values << shift
    return total


def _narrowed(values: Ints, field: Field) -> Ints:
    """Return small numbers in the narrowest type that holds them; joining blocks of several types widens them again."""
    if not field.small:
        return values
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    fitting = (kind for kind in _NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    narrow: Ints = values.astype(next(fitting, np.int64))
    return narrow
