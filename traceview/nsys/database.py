"""Opens an export for reading only and hands out rows of queries.

SQLite is told that the file cannot change (``immutable=1``): it takes no lock, writes nothing beside the file and
reads it even on read-only media.
"""

from __future__ import annotations

import re
import sqlite3
import stat
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from traceview.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

SQLITE_MAGIC = b"SQLite format 3\x00"
EXPORT_HINT = "make one with: nsys export --type sqlite -o trace.sqlite REPORT.nsys-rep"
EXPORT_AGAIN = "export it again from the .nsys-rep"
_SUFFIXED = re.compile(r"(CUPTI_ACTIVITY_KIND_\w+?)_V(\d+)")
_HEADER_BYTES = 100
_IDS_PER_QUERY = 500


@dataclass(frozen=True)
class Database:
    """An open export: its connection and the columns of each of its tables."""

    path: Path
    connection: sqlite3.Connection
    tables: Mapping[str, frozenset[str]]
    identity: tuple[int, ...]
    """what changes when the file is replaced or written: device, inode, size in bytes, time of the last change in ns"""

    @property
    def size(self) -> int:
        """Return the size of the file in bytes, as it was when it was opened."""
        return self.identity[2]

    def check_unchanged(self) -> None:
        """Raise ``InputError`` where the file is no longer the one that was opened: what was read may be of both."""
        if identify(self.path) != self.identity:
            raise InputError(f"{self.path} was replaced or written while it was read", "read it again")

    def has_rows(self, table: str) -> bool:
        """Return whether the table exists and holds a row."""
        return table in self.tables and bool(self.rows(f'SELECT 1 FROM "{table}" LIMIT 1'))  # noqa: S608

    @property
    def uri(self) -> str:
        """Return what opens the file for reading only, without locks and without anything written beside it."""
        return read_only_uri(self.path)

    def require(self, table: str, columns: Iterable[str]) -> None:
        """Raise ``InputError`` unless a table has all of some columns."""
        for name in sorted(set(columns) - self.tables[table]):
            raise InputError(f"{self.path}: table {table} has no column {name}", EXPORT_AGAIN)

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
        return {key: str(value) for key, value in found.items() if isinstance(key, int)}


@contextmanager
def readable(path: Path, table: str = "") -> Iterator[None]:
    """Turn what SQLite and numpy raise on a damaged file into one ``InputError``."""
    try:
        yield
    except sqlite3.Error as error:
        raise InputError(f"{path}: the database is damaged: {error}", EXPORT_AGAIN) from error
    except (ValueError, TypeError, OverflowError) as error:
        what = f"table {table} holds a value that is no number" if table else "a value is not what it should be"
        raise InputError(f"{path}: {what}: {error}", EXPORT_AGAIN) from error


def read_only_uri(path: Path) -> str:
    """Return the SQLite URI that opens a file read-only and as one that nobody changes."""
    return f"{path.resolve().as_uri()}?mode=ro&immutable=1"


def identify(path: Path) -> tuple[int, ...]:
    """Return device, inode, size and time of the last change of a file; empty where it is gone."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def open_database(path: Path) -> Database:
    """Open an SQLite export read-only and immutable.

    Raises ``InputError`` for anything that is no complete, readable SQLite file, and for a file that another program
    is still writing.
    """
    check_file(path)
    identity = identify(path)
    if not identity:
        raise InputError(f"{path}: no such file", "check the path")
    with readable(path):
        connection = sqlite3.connect(read_only_uri(path), uri=True)
        try:
            return Database(path, connection, _tables(connection), identity)
        except BaseException:
            connection.close()
            raise


def _tables(connection: sqlite3.Connection) -> dict[str, frozenset[str]]:
    """Return the columns of each table; a table with a version in its name is also known without it."""
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    suffixed = [(found[1], int(found[2]), found[0]) for name in names if (found := _SUFFIXED.fullmatch(name))]
    connection.execute("PRAGMA temp_store = MEMORY")
    for plain, _, name in sorted(suffixed, reverse=True):
        if plain not in names:
            connection.execute(f'CREATE TEMP VIEW "{plain}" AS SELECT * FROM main."{name}"')  # noqa: S608 - both are words
            names.append(plain)
    columns = "SELECT name FROM pragma_table_info(?)"
    return {name: frozenset(row[0] for row in connection.execute(columns, (name,))) for name in names}


def check_file(path: Path) -> None:
    """Raise ``InputError`` unless ``path`` is a whole SQLite file that nobody is writing."""
    header, size = _header(path)
    if size == 0:
        raise InputError(f"{path} is empty", EXPORT_HINT)
    if not header.startswith(SQLITE_MAGIC):
        raise InputError(f"{path} is not an SQLite file", EXPORT_HINT)
    real = path.resolve()
    for beside in (real.with_name(real.name + suffix) for suffix in ("-journal", "-wal")):
        if beside.exists():
            raise InputError(
                f"{path} is still being written: {beside.name} lies beside it",
                "wait until the export has finished, or export again",
            )
    if len(header) < _HEADER_BYTES or size < _expected_size(header):
        raise InputError(f"{path} is truncated", "copy it again, or export it again from the .nsys-rep")


def _header(path: Path) -> tuple[bytes, int]:
    """Return the first bytes of a regular file and its size."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a directory", "name one .sqlite file in it")
        if not stat.S_ISREG(mode):
            # opening a pipe would wait for whoever writes to it
            raise InputError(f"{path} is no regular file", EXPORT_HINT)
        with path.open("rb") as file:
            return file.read(_HEADER_BYTES), file.seek(0, 2)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", _near(path)) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", "check the path and its permissions") from None
    except ValueError as error:
        raise InputError(f"{str(path)!r} is no path: {error}", "check the path") from None


def _expected_size(header: bytes) -> int:
    """Return the file size that the SQLite header promises, 0 where it promises none (file format, section 1.3)."""
    page_size, change_counter = struct.unpack(">H", header[16:18])[0], header[24:28]
    pages, valid_for = struct.unpack(">I", header[28:32])[0], header[92:96]
    return pages * (65_536 if page_size == 1 else page_size) if change_counter == valid_for else 0


def _near(path: Path) -> str:
    """Return what to try for a path that does not exist: a file beside it whose name is almost the same."""
    try:
        beside = [one.name for one in path.parent.iterdir()]
    except OSError:
        return "check the path"
    close = get_close_matches(path.name, beside, 1)
    return f"did you mean {path.with_name(close[0])}?" if close else "check the path"
