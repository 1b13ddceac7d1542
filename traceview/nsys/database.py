"""Opens an export for reading only and hands out rows of queries.

SQLite is told that the file cannot change (``immutable=1``): it takes no lock, writes nothing beside the file and
reads it even on read-only media.
"""

from __future__ import annotations

import sqlite3
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceview.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

SQLITE_MAGIC = b"SQLite format 3\x00"
EXPORT_HINT = "make one with: nsys export --type sqlite -o trace.sqlite REPORT.nsys-rep"
_IDS_PER_QUERY = 500


@dataclass(frozen=True)
class Database:
    """An open export: its connection and the columns of each of its tables."""

    path: Path
    connection: sqlite3.Connection
    tables: Mapping[str, frozenset[str]]

    def has_rows(self, table: str) -> bool:
        """Return whether the table exists and holds a row."""
        return table in self.tables and bool(self.rows(f'SELECT 1 FROM "{table}" LIMIT 1'))  # noqa: S608

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a query; raises ``InputError`` where the file is damaged."""
        with readable(self.path):
            return self.connection.execute(sql, parameters).fetchall()

    def strings(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the text of each string id that the export knows."""
        wanted = sorted({int(number) for number in ids})
        found: dict[int, str] = {}
        if "StringIds" not in self.tables:
            return found
        for first in range(0, len(wanted), _IDS_PER_QUERY):
            some = wanted[first : first + _IDS_PER_QUERY]
            marks = ",".join("?" * len(some))
            found.update(self.rows(f"SELECT id, value FROM StringIds WHERE id IN ({marks})", some))  # noqa: S608
        return {key: str(value) for key, value in found.items()}


@contextmanager
def readable(path: Path, table: str = "") -> Iterator[None]:
    """Turn what SQLite and numpy raise on a damaged file into one ``InputError``."""
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(f"{path}: the database is damaged: {error}", "export it again from the .nsys-rep") from error
    except (ValueError, TypeError, OverflowError) as error:
        what = f"table {table} holds a value that is no number" if table else "a value is not what it should be"
        raise InputError(f"{path}: {what}: {error}", "export it again from the .nsys-rep") from error


def open_database(path: Path) -> Database:
    """Open an SQLite export read-only and immutable.

    Raises ``InputError`` for anything that is no complete, readable SQLite file, and for a file that another program
    is still writing.
    """
    check_file(path)
    with readable(path):
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables = {
            name: frozenset(row[0] for row in connection.execute("SELECT name FROM pragma_table_info(?)", (name,)))
            for name in names
        }
    return Database(path, connection, tables)


def check_file(path: Path) -> None:
    """Raise ``InputError`` unless ``path`` is a whole SQLite file that nobody is writing."""
    try:
        if path.is_dir():
            raise InputError(f"{path} is a directory", "name one .sqlite file in it")
        with path.open("rb") as file:
            header = file.read(100)
            size = file.seek(0, 2)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", "check the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", "check its permissions") from None
    if size == 0:
        raise InputError(f"{path} is empty", EXPORT_HINT)
    if not header.startswith(SQLITE_MAGIC):
        raise InputError(f"{path} is not an SQLite file", EXPORT_HINT)
    for suffix in ("-journal", "-wal"):
        if path.with_name(path.name + suffix).exists():
            raise InputError(
                f"{path} is still being written: {path.name}{suffix} lies beside it",
                "wait until the export has finished, or export again",
            )
    if len(header) < 100 or size < _expected_size(header):
        raise InputError(f"{path} is truncated", "copy it again, or export it again from the .nsys-rep")


def _expected_size(header: bytes) -> int:
    """Return the file size that the SQLite header promises, 0 where it promises none (file format, section 1.3)."""
    page_size, change_counter = struct.unpack(">H", header[16:18])[0], header[24:28]
    pages, valid_for = struct.unpack(">I", header[28:32])[0], header[92:96]
    return pages * (65_536 if page_size == 1 else page_size) if change_counter == valid_for else 0
