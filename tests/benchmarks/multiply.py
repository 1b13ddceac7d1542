"""Multiplies a capture in time: the same structure, as many times as it takes to reach a number of rows.

Each copy is shifted behind the one before it and gets correlation and event ids of its own, so that nothing in it
points into another. Usage::

    python tests/benchmarks/multiply.py CAPTURE.sqlite OUT.sqlite --rows 7500000
    python tests/benchmarks/multiply.py CAPTURE.sqlite OUT.sqlite --rows 100000 --metrics 2500000
"""

from __future__ import annotations

import argparse
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

EVENT_TABLES = (
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",
)
COUNTED_TABLES = EVENT_TABLES[:5]
"""Tables whose rows are calls and operations: what a size in rows counts."""

_TIMES = ("start", "end", "timestamp")
_EVENT_IDS = ("eventId", "eventSyncId")
_NO_ID = 4294967295
_PAUSE_NS = 1_000_000
_METRIC_PERIOD_NS = 50_000


def count_rows(path: Path) -> int:
    """Return how many calls and operations an export holds."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        tables = _tables(connection, COUNTED_TABLES)
        return sum(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0] for table in tables)


def multiply(source: Path, target: Path, times: int, *, metrics: int = 0) -> Path:
    """Write ``source`` ``times`` over into ``target``, with ``metrics`` rows of GPU metrics beside it."""
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target)) as connection:
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -200000"):
            connection.execute(f"PRAGMA {pragma}")
        tables = _tables(connection, EVENT_TABLES)
        low, high = _span(connection, tables)
        steps = {
            **dict.fromkeys(_TIMES, high - low + _PAUSE_NS),
            "correlationId": _largest(connection, tables, ("correlationId",)) + 1,
            **dict.fromkeys(_EVENT_IDS, _largest(connection, tables, _EVENT_IDS) + 1),
        }
        for table in tables:
            _repeat(connection, table, times, steps)
        if metrics:
            _add_metrics(connection, metrics, low)
        connection.commit()
    return target


def _tables(connection: sqlite3.Connection, wanted: tuple[str, ...]) -> list[str]:
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return [table for table in wanted if table in names]


def _columns(connection: sqlite3.Connection, table: str) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def _span(connection: sqlite3.Connection, tables: list[str]) -> tuple[int, int]:
    """Return when the first event starts and the last one ends."""
    timed = [table for table in tables if {"start", "end"} <= set(_columns(connection, table))]
    bounds = [connection.execute(f'SELECT MIN(start), MAX("end") FROM {table}').fetchone() for table in timed]
    return min(low for low, _ in bounds if low is not None), max(high for _, high in bounds if high is not None)


def _largest(connection: sqlite3.Connection, tables: list[str], names: tuple[str, ...]) -> int:
    """Return the largest id in some columns, the one that means none apart."""
    found = [0]
    for table in tables:
        for name in set(names) & set(_columns(connection, table)):
            query = f"SELECT COALESCE(MAX({name}), 0) FROM {table} WHERE {name} <> {_NO_ID}"
            found.append(connection.execute(query).fetchone()[0])
    return max(found)


def _repeat(connection: sqlite3.Connection, table: str, times: int, steps: dict[str, int]) -> None:
    columns = _columns(connection, table)
    shifted = [
        f'CASE WHEN "{name}" = {_NO_ID} OR "{name}" = 0 THEN "{name}" ELSE "{name}" + ?1 * {steps[name]} END'
        if name in (*_EVENT_IDS, "correlationId")
        else f'"{name}" + ?1 * {steps[name]}'
        if name in steps
        else f'"{name}"'
        for name in columns
    ]
    # only ranges are repeated: domains and marks of facts are said once
    ranges = "AND eventType IN (59, 60)" if table == "NVTX_EVENTS" else ""
    last = connection.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()[0]
    query = f"INSERT INTO {table} SELECT {', '.join(shifted)} FROM {table} WHERE rowid <= ?2 {ranges}"
    for number in range(1, times):
        connection.execute(query, (number, last))


def _add_metrics(connection: sqlite3.Connection, rows: int, low: int) -> None:
    """Add samples of ten counters of GPU 0, two of which are PCIe traffic."""
    names = ["PCIe RX Throughput [Throughput %]", "PCIe TX Throughput [Throughput %]"]
    names += [f"Counter {number} [Throughput %]" for number in range(2, 10)]
    connection.execute(
        "CREATE TABLE GPU_METRICS (rawTimestamp INT, timestamp INT, typeId INT, metricId INT, value INT)"
    )
    connection.execute(
        "CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, sourceId INT, typeName TEXT, metricId INT, metricName TEXT)"
    )
    described = [(16_777_216, 0, "GPU", number, name) for number, name in enumerate(names)]
    connection.executemany("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, ?, ?, ?, ?)", described)
    samples = (
        (0, low + at // len(names) * _METRIC_PERIOD_NS, 16_777_216, at % len(names), at * 7 % 101) for at in range(rows)
    )
    connection.executemany("INSERT INTO GPU_METRICS VALUES (?, ?, ?, ?, ?)", samples)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--rows", type=int, required=True, help="calls and operations that there shall be about")
    parser.add_argument("--metrics", type=int, default=0, help="rows of GPU metrics to add")
    chosen = parser.parse_args()
    multiply(
        chosen.source, chosen.target, max(round(chosen.rows / count_rows(chosen.source)), 1), metrics=chosen.metrics
    )
    sys.stdout.write(f"{chosen.target}: {count_rows(chosen.target)} rows\n")


if __name__ == "__main__":
    main()
