"""Writes a part of an export as a smaller one that says nothing of people and machines.

Tables keep their names and columns, so that every reader of exports reads the result. What is kept of them is listed in
``slim_tables``; texts pass through ``slim_texts``. The export is attached read-only and immutable.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traceview.errors import OutputError
from traceview.nsys import schema
from traceview.nsys import slim_tables as kept
from traceview.nsys.database import readable
from traceview.nsys.slim_rows import rows_of, stored_name
from traceview.nsys.slim_texts import Scrubber, scrubber_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from traceview.model import Ints, Trace
    from traceview.nsys.database import Database

PAGE_BYTES = 1024
"""Small, since most of the kept tables hold a few short rows."""


def write_slim(database: Database, part: Trace, output: Path, *, metrics_ns: tuple[int, int] | None = None) -> Scrubber:
    """Write ``part`` of the trace that ``database`` holds to the new file ``output``; return what scrubbed its texts.

    ``part`` is the trace as read, or reduced. ``metrics_ns`` is the time from and to which hardware counters are kept.
    Raises ``InputError`` where the export is damaged and ``OutputError`` where the file cannot be written.
    """
    rows = rows_of(database, part)
    scrubber = scrubber_for(database)
    with closing(sqlite3.connect(output.resolve().as_uri(), uri=True, isolation_level=None)) as connection:
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        for setting in (f"page_size = {PAGE_BYTES}", "journal_mode = OFF", "synchronous = OFF", "auto_vacuum = NONE"):
            connection.execute(f"PRAGMA {setting}")
        for name, clean in (("clean_text", scrubber.text), ("clean_json", _clean_json(scrubber))):
            connection.create_function(name, 1, _on_text(clean), deterministic=True)
        copy = _Copy(database, connection)
        with readable(database.path):
            connection.execute(
                "ATTACH DATABASE ? AS source", (f"{database.path.resolve().as_uri()}?mode=ro&immutable=1",)
            )
        connection.execute("BEGIN")
        with readable(database.path), _room_beside(output):
            _copy_events(copy, rows)
            _copy_descriptions(copy, part, scrubber)
            if metrics_ns is not None:
                _copy_metrics(copy, *metrics_ns)
            _copy_strings(copy, scrubber)
        with _room_beside(output):
            connection.execute("COMMIT")
            connection.execute("DETACH DATABASE source")
            connection.execute("VACUUM")
    return scrubber


@contextmanager
def _room_beside(output: Path) -> Iterator[None]:
    """Tell a full disk, which SQLite reports like a damaged file, from one."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if "disk" not in str(error):
            raise
        hint = "make room there, or use another folder: TMPDIR=FOLDER traceview slim .."
        raise OutputError(f"{output.parent} cannot hold the result: {error}", hint) from None


def _clean_json(scrubber: Scrubber) -> Callable[[str], str | None]:
    def clean(text: str) -> str | None:
        try:
            return json.dumps(scrubber.value(json.loads(text)), separators=(",", ":"))
        except ValueError:
            return None

    return clean


def _on_text(clean: Callable[[str], str | None]) -> Callable[[Any], str | None]:
    """Return a function of SQL values; bytes are texts, whatever they are, and everything else is no text."""

    def cleaned(value: Any) -> str | None:
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        return clean(value) if isinstance(value, str) else None

    return cleaned


@dataclass(frozen=True)
class _Copy:
    """Copies tables from the attached export into the new file."""

    database: Database
    connection: sqlite3.Connection

    def rows(self, table: str, rows: Ints) -> None:
        """Copy some rows of a table."""
        self.connection.execute("CREATE TEMP TABLE wanted (id INTEGER PRIMARY KEY)")
        self.connection.executemany("INSERT INTO wanted VALUES (?)", ((row,) for row in rows.tolist()))
        self.where(table, "rowid IN (SELECT id FROM wanted)")
        self.connection.execute("DROP TABLE wanted")

    def where(self, table: str, condition: str = "TRUE", parameters: tuple[Any, ...] = ()) -> None:
        """Copy the rows of a table for which a condition holds; nothing where there is no such table or row."""
        if table not in self.database.tables:
            return
        stored = stored_name(self.database, table)
        found = f"FROM source.{_quoted(stored)} WHERE {condition}"
        if not self.connection.execute(f"SELECT 1 {found} LIMIT 1", parameters).fetchone():
            return
        columns = self.connection.execute("SELECT name, type, [notnull] FROM pragma_table_info(?, 'source')", (stored,))
        described = columns.fetchall()
        definitions = [f"{_quoted(name)} {kind}{' NOT NULL' * bool(need)}" for name, kind, need in described]
        values = [_value(table, *column) for column in described]
        self.connection.execute(f"CREATE TABLE main.{_quoted(table)} ({', '.join(definitions)})")
        self.connection.execute(
            f"INSERT INTO main.{_quoted(table)} SELECT {', '.join(values)} {found} ORDER BY rowid",
            parameters,
        )

    def lines(self, table: str, lines: Iterable[tuple[str, str]]) -> None:
        """Write the lines of a description, each a name and a value."""
        self.connection.execute(f"CREATE TABLE IF NOT EXISTS main.{_quoted(table)} (name TEXT, value TEXT)")
        self.connection.executemany(f"INSERT INTO main.{_quoted(table)} VALUES (?, ?)", lines)  # noqa: S608


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _value(table: str, name: str, kind: str, required: int) -> str:
    """Return the SQL for a column's value in the new file."""
    column = _quoted(name)
    if (table, name) == kept.JSON_TEXT:
        # ranges may carry JSON of the program's own, which nobody reads
        return f"CASE eventType WHEN {schema.NVTX_MARK} THEN clean_json({column}) END"
    if (table, name) in kept.TEXTS:
        return f"COALESCE(clean_text({column}), '')" if required else f"clean_text({column})"
    numeric = any(word in kind.upper() for word in ("INT", "REAL", "FLOA", "DOUB"))
    if numeric and (table, name) not in kept.EMPTIED:
        # whatever else a damaged file holds here becomes a number too
        return f"{column} + 0"
    return ("0" if numeric else "''") if required else "NULL"


def _copy_events(copy: _Copy, rows: dict[str, Ints]) -> None:
    for table, chosen in rows.items():
        copy.rows(table, chosen)


def _copy_descriptions(copy: _Copy, part: Trace, scrubber: Scrubber) -> None:
    """Copy what is said of GPUs, contexts and versions, and what the profiler said is wrong; add what is left here."""
    for table in kept.WHOLE_TABLES:
        copy.where(table)
    for table in kept.VERSION_TABLES:
        _copy_lines(copy, table, lambda name: bool(kept.VERSION_KEYS.fullmatch(name)), scrubber)
    _copy_lines(copy, kept.CAPTURE_TABLE, lambda name: bool(kept.CAPTURE_KEYS.fullmatch(name)), scrubber)
    forwards = part.capture.kept
    if forwards is not None:
        numbers = ",".join(str(number) for number in forwards.warmup)
        copy.lines(
            kept.CAPTURE_TABLE,
            [(f"{schema.SLIM_KEY}FIRST_FORWARD", str(forwards.first)), (f"{schema.SLIM_KEY}WARMUP", numbers)],
        )
    said = part.capture.diagnostics
    copy.where("DIAGNOSTIC_EVENT", f"text IN ({', '.join('?' * len(said))})", said)


def _copy_lines(copy: _Copy, table: str, wanted: Callable[[str], bool], scrubber: Scrubber) -> None:
    if not {"name", "value"} <= copy.database.tables.get(table, frozenset()):
        return
    lines = copy.database.rows(f"SELECT name, value FROM {_quoted(table)}")  # noqa: S608
    chosen = [(str(name), scrubber.text(str(value))) for name, value in lines if wanted(str(name))]
    if chosen:
        copy.lines(table, chosen)


def _copy_metrics(copy: _Copy, start: int, end: int) -> None:
    """Copy samples of counters from the last one before a time to the first one after it, and the counters' names."""
    for table, columns in kept.METRIC_TIMES.items():
        time = next((name for name in columns if name in copy.database.tables.get(table, frozenset())), None)
        if time is not None:
            before = f"SELECT MAX({time}) FROM source.{table} WHERE {time} <= ?"  # noqa: S608
            after = f"SELECT MIN({time}) FROM source.{table} WHERE {time} >= ?"  # noqa: S608
            inside = f"{time} BETWEEN COALESCE(({before}), ?) AND COALESCE(({after}), ?)"
            copy.where(table, inside, (start, start, end, end))
    for table in kept.METRIC_NAMES:
        copy.where(table)


def _copy_strings(copy: _Copy, scrubber: Scrubber) -> None:
    """Write the strings that the copied rows point to."""
    connection = copy.connection
    written = {name for (name,) in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")}
    if not {"id", "value"} <= copy.database.tables.get(kept.STRINGS_TABLE, frozenset()):
        return
    if schema.NVTX_TABLE in written:
        _move_json(copy)
    functions, files = _python_ids(connection) if schema.NVTX_TABLE in written else (set(), set())
    modules: set[int] = set()
    for table, columns in kept.STRING_IDS.items():
        for column in columns:
            if table in written and column in copy.database.tables[table]:
                ids = {number for (number,) in connection.execute(f"SELECT DISTINCT {column} FROM main.{table}")}  # noqa: S608
                (modules if (table, column) in kept.MODULE_IDS else functions).update(ids - {None})
    clean = {**dict.fromkeys(functions, scrubber.text), **dict.fromkeys(modules, scrubber.module)}
    clean |= dict.fromkeys(files, scrubber.source_file)
    scrubbed = {number: clean[number](text) for number, text in copy.database.strings(clean).items()}
    connection.execute(f"CREATE TABLE main.{kept.STRINGS_TABLE} (id INTEGER NOT NULL PRIMARY KEY, value TEXT)")
    connection.executemany(f"INSERT INTO main.{kept.STRINGS_TABLE} VALUES (?, ?)", sorted(scrubbed.items()))  # noqa: S608


def _move_json(copy: _Copy) -> None:
    """Put JSON that is stored as a string into the rows of the marks themselves, scrubbed."""
    if {"jsonTextId", "jsonText"} <= copy.database.tables[schema.NVTX_TABLE]:
        copy.connection.execute(
            f"UPDATE main.{schema.NVTX_TABLE} SET jsonText = COALESCE(jsonText, (SELECT clean_json(s.value) "  # noqa: S608
            f"FROM source.{kept.STRINGS_TABLE} AS s WHERE s.id = jsonTextId)), jsonTextId = NULL "
            "WHERE jsonTextId NOT NULL"
        )


def _python_ids(connection: sqlite3.Connection) -> tuple[set[int], set[int]]:
    """Return the string ids of functions and of files in the Python stacks that were copied."""
    functions: set[int] = set()
    files: set[int] = set()
    described = connection.execute("SELECT name FROM pragma_table_info(?, 'main')", (schema.NVTX_TABLE,))
    columns = {name for (name,) in described}
    if kept.JSON_TEXT[1] not in columns:
        return functions, files
    for (text,) in connection.execute(f"SELECT jsonText FROM main.{schema.NVTX_TABLE} WHERE jsonText IS NOT NULL"):  # noqa: S608
        _collect_ids(json.loads(text), functions, files)
    return functions, files


def _collect_ids(value: Any, functions: set[int], files: set[int]) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            if isinstance(one, int):
                {"Function": functions, "File": files}.get(key, set()).add(one)
            else:
                _collect_ids(one, functions, files)
    elif isinstance(value, list):
        for one in value:
            _collect_ids(one, functions, files)
