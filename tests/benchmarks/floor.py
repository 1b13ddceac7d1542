"""The floor under reading a trace: what SQLite alone needs to step over the columns that ``report`` reads.

One aggregate per column, ``SUM(column & 1)``, makes SQLite decode every value of it and hand nothing out; a C program
that calls ``sqlite3_step`` and ``sqlite3_column_int64`` for the same columns takes the same time (within 5 % where it
was tried). Only the columns that the export has are stepped over. Usage::

    python tests/benchmarks/floor.py CAPTURE.sqlite
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

from traceview.nsys import schema

SOURCES = (
    schema.CALLS,
    schema.KERNELS,
    schema.COPIES,
    schema.MEMSETS,
    schema.GRAPHS,
    schema.EVENT_RECORDS,
    schema.SYNCHRONISATIONS,
)


def queries(connection: sqlite3.Connection) -> list[str]:
    """Return one query per table that the reader reads, over the columns that it reads."""
    found = []
    for source in SOURCES:
        for table in source.tables:
            there = {name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
            wanted = [name for field in source.fields.values() for name in field.columns if name in there]
            if wanted:
                found.append(_sums(wanted, table))
    return found


def _sums(columns: list[str], table: str) -> str:
    sums = ", ".join(f'SUM("{name}" & 1)' for name in columns)
    return f"SELECT {sums} FROM {table}"


def measure_floor(path: Path) -> tuple[float, float]:
    """Return the wall and CPU seconds that stepping over the columns takes, without starting Python."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        asked = queries(connection)
        wall, cpu = time.perf_counter(), time.process_time()
        for query in asked:
            connection.execute(query).fetchone()
        return time.perf_counter() - wall, time.process_time() - cpu


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure_floor(Path(sys.argv[1]))) + "\n")
