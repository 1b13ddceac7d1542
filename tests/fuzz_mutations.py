"""What the fuzzer does to a trace: small changes of rows and of bytes, each a value whose ``repr`` replays it."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuzz_scenes import base

if TYPE_CHECKING:
    from pathlib import Path

_PAGE = 4096


@dataclass(frozen=True)
class RawText:
    """Bytes that are stored as text, whether or not they are UTF-8."""

    raw: bytes


Value = int | float | str | bytes | RawText | None


@dataclass(frozen=True)
class SetCell:
    """Put a value into a column: of one row (counted round), or of all where ``row`` is None."""

    table: str
    column: str
    row: int | None
    value: Value

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        raw = isinstance(self.value, RawText)
        value = self.value.raw if isinstance(self.value, RawText) else self.value
        what = "CAST(? AS TEXT)" if raw else "?"
        where, chosen = _where(connection, self.table, self.row)
        connection.execute(f'UPDATE "{self.table}" SET "{self.column}" = {what} {where}', [value, *chosen])


@dataclass(frozen=True)
class Shift:
    """Add to a number of one row, or of all."""

    table: str
    column: str
    row: int | None
    by: int

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        where, chosen = _where(connection, self.table, self.row)
        connection.execute(
            f'UPDATE "{self.table}" SET "{self.column}" = "{self.column}" + ? {where}', [self.by, *chosen]
        )


@dataclass(frozen=True)
class Reverse:
    """Swap start and end of one row, or of all."""

    table: str
    row: int | None

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        where, chosen = _where(connection, self.table, self.row)
        connection.execute(f'UPDATE "{self.table}" SET "start" = "end", "end" = "start" {where}', chosen)


@dataclass(frozen=True)
class Repeat:
    """Store a row, or all, ``times`` times more."""

    table: str
    row: int | None
    times: int

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        where, chosen = _where(connection, self.table, self.row)
        for _ in range(self.times):
            connection.execute(f'INSERT INTO "{self.table}" SELECT * FROM "{self.table}" {where}', chosen)


@dataclass(frozen=True)
class Drop:
    """Drop a row, or, where neither a row nor a column is named, the whole table."""

    table: str
    row: int | None = None
    column: str | None = None

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        if self.column is not None:
            connection.execute(f'ALTER TABLE "{self.table}" DROP COLUMN "{self.column}"')
        elif self.row is not None:
            where, chosen = _where(connection, self.table, self.row)
            connection.execute(f'DELETE FROM "{self.table}" {where}', chosen)
        else:
            connection.execute(f'DROP TABLE "{self.table}"')


@dataclass(frozen=True)
class Mark:
    """Add an NVTX event: a mark, a range, a domain, with a text of its own."""

    text: str
    kind: int = 34
    start: int = 7
    end: int | None = None
    domain: int = 1

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        tid = connection.execute("SELECT globalTid FROM NVTX_EVENTS WHERE globalTid NOTNULL LIMIT 1").fetchone() or (1,)
        connection.execute(
            "INSERT INTO NVTX_EVENTS (text, eventType, start, end, domainId, globalTid) VALUES (?, ?, ?, ?, ?, ?)",
            (self.text, self.kind, self.start, self.end, self.domain, *tid),
        )


@dataclass(frozen=True)
class Meta:
    """Add a line to the capture's or the export's description."""

    table: str
    name: str
    value: Value

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        connection.execute(f'INSERT INTO "{self.table}" (name, value) VALUES (?, ?)', (self.name, self.value))


@dataclass(frozen=True)
class Nest:
    """Add ranges of one name inside each other."""

    depth: int
    text: str

    def rows(self, connection: sqlite3.Connection) -> None:
        """Change the rows of an open trace."""
        for number in range(self.depth):
            Mark(self.text, 59, 1_000 + number, 300_000 - number, 0).rows(connection)


@dataclass(frozen=True)
class Flip:
    """Change one byte; ``at`` is counted round, from the end where it is negative."""

    at: int
    by: int

    def bytes(self, content: bytearray) -> None:
        """Change the bytes of a trace."""
        content[self.at % len(content)] ^= self.by


@dataclass(frozen=True)
class Cut:
    """Cut the file off some bytes before or behind the border of a page."""

    page: int
    by: int = 0

    def bytes(self, content: bytearray) -> None:
        """Change the bytes of a trace."""
        size = max((self.page * _PAGE) % (len(content) + _PAGE) + self.by, 0)
        del content[size:]


@dataclass(frozen=True)
class Fill:
    """Overwrite a page with one byte, or with the content of another page."""

    page: int
    byte: int = 0
    other: int | None = None

    def bytes(self, content: bytearray) -> None:
        """Change the bytes of a trace."""
        pages = max(len(content) // _PAGE, 1)
        start = self.page % pages * _PAGE
        length = len(content[start : start + _PAGE])
        if self.other is None:
            content[start : start + length] = bytes([self.byte]) * length
        else:
            source = self.other % pages * _PAGE
            content[start : start + length] = content[source : source + length].ljust(length, b"\0")


RowChange = SetCell | Shift | Reverse | Repeat | Drop | Mark | Meta | Nest
ByteChange = Flip | Cut | Fill


def write_damaged(path: Path, name: str, changes: list[RowChange | ByteChange]) -> Path:
    """Write one of the base traces with changes of its rows, then of its bytes.

    A change that this trace has no place for (no such table, column or row) does nothing.
    """
    path.write_bytes(base(name))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "trusted_schema = ON"):
            connection.execute(f"PRAGMA {setting}")
        connection.execute("BEGIN")
        for change in changes:
            if not isinstance(change, ByteChange):
                with suppress(sqlite3.Error, OverflowError):
                    change.rows(connection)
        connection.execute("COMMIT")
    content = bytearray(path.read_bytes())
    for change in changes:
        if isinstance(change, ByteChange) and content:
            change.bytes(content)
    path.write_bytes(content)
    return path


def _where(connection: sqlite3.Connection, table: str, row: int | None) -> tuple[str, list[Any]]:
    """Return the condition for one row, counted round, or for all."""
    if row is None:
        return "", []
    [(count,)] = connection.execute(f'SELECT COUNT(*) FROM "{table}"')
    if not count:
        return "WHERE FALSE", []
    return f'WHERE rowid = (SELECT rowid FROM "{table}" LIMIT 1 OFFSET ?)', [row % count]
