"""Writes rows into an SQLite file in the layout of one version of the Nsight Systems export."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from layouts import ENUMERATIONS, LAYOUTS, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Self

PROCESS = 4711


def global_pid(process: int, vm: int = 1) -> int:
    """Return a process id as Nsight stores it."""
    return vm << 48 | process << 24


class ExportWriter:
    """Rows of one export; every method that adds some returns the writer."""

    def __init__(self, layout: str = "3.20.3", *, process: int = PROCESS, lazy: bool = True) -> None:
        self.layout: Layout = LAYOUTS[layout]
        self.process = process
        self.lazy = lazy
        self._rows: list[tuple[str, dict[str, Any]]] = []
        self._strings: dict[str, int] = {}
        self._extra: dict[str, list[str]] = {}
        self._renamed: dict[str, str] = {}
        self._enumerations = dict(ENUMERATIONS)

    def string(self, text: str) -> int:
        """Return the id under which a text is stored in StringIds."""
        return self._strings.setdefault(text, len(self._strings) + 1)

    def row(self, table: str, **columns: Any) -> Self:
        """Add one row as it is; columns that are not given are 0, empty or NULL."""
        self._rows.append((table, columns))
        return self

    def gpu(self, device: int, name: str, *, gpu: int | None = None) -> Self:
        """Name a GPU: ``device`` is CUDA's id in the process, ``gpu`` the machine's id (the same where not given)."""
        number = device if gpu is None else gpu
        self.row("TARGET_INFO_CUDA_GPU", deviceId=number, name=name)
        self.row("TARGET_INFO_GPU", id=number, name=name)
        return self.row("TARGET_INFO_CUDA_DEVICE", gpuId=number, cudaId=device, pid=self.process)

    def null_stream(self, stream: int, *, context: int = 1, device: int = 0) -> Self:
        """Say which stream is the null stream of a context."""
        where = {"processId": self.process, "deviceId": device, "contextId": context}
        self.row("TARGET_INFO_CUDA_NULL_STREAM", streamId=stream, **where)
        return self.row("TARGET_INFO_CUDA_CONTEXT_INFO", nullStreamId=stream, **where)

    def capture(self, name: str, value: str) -> Self:
        """Add a line of the capture's own description."""
        return self.row("META_DATA_CAPTURE", name=name, value=value)

    def diagnostic(self, text: str) -> Self:
        """Add a message of the profiler about itself."""
        return self.row("DIAGNOSTIC_EVENT", text=text)

    def foreign_column(self, table: str, column: str) -> Self:
        """Give a table a column that nsys never wrote, as other tools do."""
        self._extra.setdefault(table, []).append(column)
        return self

    def renamed(self, table: str, name: str) -> Self:
        """Write a table under another name."""
        self._renamed[table] = name
        return self

    def enumeration(self, table: str, names: Sequence[str]) -> Self:
        """Number the names of an enumeration anew: a name's position is its number."""
        self._enumerations[table] = tuple(names)
        return self

    def write(self, path: Path) -> Path:
        """Write the export to a new file and return its path."""
        path.unlink(missing_ok=True)
        with closing(_connect(path)) as connection:
            connection.execute("BEGIN")
            for table, rows in self._tables().items():
                columns = self.layout.tables[table]
                name = self._renamed.get(table, table)
                definition = ", ".join([*(column.sql for column in columns), *self._extra.get(table, [])])
                connection.execute(f'CREATE TABLE "{name}" ({definition})')
                filled = [[_value(row, each.name, each.nullable, each.text) for each in columns] for row in rows]
                marks = ", ".join("?" * len(columns))
                names = ", ".join(f'"{each.name}"' for each in columns)
                connection.executemany(f'INSERT INTO "{name}" ({names}) VALUES ({marks})', filled)
            connection.execute("COMMIT")
        return path

    def _tables(self) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {} if self.lazy else {name: [] for name in self.layout.tables}
        for table, columns in (*self._rows, *self._descriptions()):
            if self.layout.has(table):
                rows.setdefault(table, []).append(columns)
        return rows

    def _descriptions(self) -> Iterable[tuple[str, dict[str, Any]]]:
        yield "TARGET_INFO_SESSION_START_TIME", {"utcEpochNs": 1_700_000_000_000_000_000}
        for text, number in self._strings.items():
            yield "StringIds", {"id": number, "value": text}
        if self.layout.meta_table:
            yield self.layout.meta_table, {"name": "EXPORT_PRODUCT_VERSION", "value": self.layout.product}
            yield self.layout.meta_table, {"name": "EXPORT_SCHEMA_VERSION", "value": self.layout.schema}
        for table, names in self._enumerations.items():
            for number, name in enumerate(names):
                yield table, {"id": number, "name": name, "label": name}


def _value(row: dict[str, Any], name: str, nullable: bool, text: bool) -> Any:
    value = row.get(name)
    if value is None and not nullable:
        return "" if text else 0
    return value


def change(path: Path, *statements: str) -> Path:
    """Run SQL on a written file: what no nsys would have written."""
    with closing(_connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def _connect(path: Path) -> sqlite3.Connection:
    """Open a file to write: quickly, since a test's file need not survive a power cut."""
    connection = sqlite3.connect(path, isolation_level=None)
    for setting in ("synchronous = OFF", "journal_mode = MEMORY"):
        connection.execute(f"PRAGMA {setting}")
    return connection
