"""One scene in every version of the export is one trace; what a version cannot hold is missing and nothing else is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from export_writer import change
from layouts import LAYOUTS
from plain_trace import everything, operations
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview.errors import InputError
from traceview.model import Direction, Kind

if TYPE_CHECKING:
    from pathlib import Path

    from plain_trace import Row

NEWEST = "3.28.1"
LOADS = [[(1000, 1100), (1100, 1200)], [(1200, 1400)], [(1400, 1600)]]
COMPUTES = [[(1200, 1350)], [(1400, 1500), (1500, 1590)], [(1600, 1800)]]


def scene(layout: str, *, lazy: bool = True) -> TraceBuilder:
    """Build a forward with everything that an old export can say too, and events and graphs beside it."""
    builder = TraceBuilder(layout, lazy=lazy).gpu(0, "NVIDIA H200").null_stream(7)
    layered_forward(builder, start=0, loads=LOADS, computes=COMPUTES, number=1)
    builder.record(5, stream=13, call=(500, 501), sync=8).wait(5, stream=7, call=(502, 503), sync=8)
    builder.stream_sync(stream=7, call=(510, 1810)).device_sync(call=(1811, 1812)).event_sync(5, call=(1813, 1814))
    builder.copy(1820, 1821, "d2h", 4, memory="pageable", stream=7, call=(1815, 1822), api="cudaMemcpy_v3020")
    builder.memset(1830, 1840, call=(1823, 1824)).api("cudaMalloc_v3020", 1841, 1850)
    builder.api("cudaFree_v3020", 1860, 1870, correlation=9, callchainId=1).stack(1, [("free", "libcudart.so")])
    builder.api("cudaFree", 1859, 1871, correlation=9, eventClass=67, callchainId=1)
    builder.migration(1900, 1950, cause=2).range("a range", 5, 1900, domain="traceview", registered=True)
    return builder.kernel(2000, 2001, stream=99, process=4999, device=1)


def read_scene(layout: str, tmp_path: Path, *, lazy: bool = True) -> dict[str, list[Row]]:
    return everything(traceview.read(scene(layout, lazy=lazy).write(tmp_path / f"{layout}.sqlite")))


def without(found: dict[str, list[Row]], layout: str) -> dict[str, list[Row]]:
    """Take out of the newest version's answer what an older version had no column or table for."""
    has = LAYOUTS[layout].has
    plain = {name: [dict(row) for row in rows] for name, rows in found.items()}
    if not has("CUPTI_ACTIVITY_KIND_CUDA_EVENT"):
        plain["event_records"] = []
    for table, name in (("CUDA_EVENT", "event_records"), ("SYNCHRONIZATION", "event_waits")):
        if not has(f"CUPTI_ACTIVITY_KIND_{table}", "eventSyncId"):
            plain[name] = [row | {"sync": -1} for row in plain[name]]
    if not has("CUPTI_ACTIVITY_KIND_RUNTIME", "callchainId"):
        plain["calls"] = [row | {"stack": None} for row in plain["calls"]]
    if not has("CUPTI_ACTIVITY_KIND_MEMCPY", "migrationCause"):
        plain["migrations"] = [row | {"cause": 0} for row in plain["migrations"]]
    return plain


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_scene_is_the_same_trace_in_every_layout(layout: str, tmp_path: Path) -> None:
    assert read_scene(layout, tmp_path) == without(read_scene(NEWEST, tmp_path), layout)


@pytest.mark.parametrize("layout", ["2.9.1", "3.7.2", "3.28.1"])
def test_empty_tables_are_as_good_as_absent_ones(layout: str, tmp_path: Path) -> None:
    assert read_scene(layout, tmp_path, lazy=False) == read_scene(layout, tmp_path)


def test_the_scene_has_something_of_everything(tmp_path: Path) -> None:
    found = read_scene(NEWEST, tmp_path)
    assert all(found.values())
    assert {row["kind"] for row in found["operations"]} == {Kind.KERNEL.name, Kind.COPY.name, Kind.MEMSET.name}
    assert {row["direction"] for row in found["operations"]} == {
        way.name for way in (Direction.H2D, Direction.D2H, Direction.OTHER)
    }


def test_rows_may_stand_in_any_order_in_their_tables(tmp_path: Path) -> None:
    path = scene(NEWEST).write(tmp_path / "trace.sqlite")
    before = everything(traceview.read(path))
    for table in ("KERNEL", "MEMCPY", "RUNTIME", "SYNCHRONIZATION"):
        name = f"CUPTI_ACTIVITY_KIND_{table}"
        change(path, f"CREATE TABLE turned AS SELECT * FROM {name} ORDER BY rowid DESC", f"DELETE FROM {name}")
        change(path, f"INSERT INTO {name} SELECT * FROM turned", "DROP TABLE turned")
    assert everything(traceview.read(path)) == before


def test_columns_and_indexes_of_other_tools_change_nothing(tmp_path: Path) -> None:
    """DLProf adds text columns, others add indexes and tables of their own."""
    plain = everything(traceview.read(scene(NEWEST).write(tmp_path / "plain.sqlite")))
    builder = scene(NEWEST).foreign_column("CUPTI_ACTIVITY_KIND_KERNEL", "kernel_name TEXT DEFAULT 'gemm'")
    builder.foreign_column("CUPTI_ACTIVITY_KIND_RUNTIME", "cuda_name TEXT DEFAULT 'x'")
    path = builder.write(tmp_path / "dlprof.sqlite")
    change(path, "CREATE INDEX i ON CUPTI_ACTIVITY_KIND_KERNEL (start)", "CREATE TABLE mine (start)")
    change(path, "CREATE VIEW CUPTI_ACTIVITY_KIND_GRAPH_TRACE AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
    change(path, "ALTER TABLE CUPTI_ACTIVITY_KIND_MEMCPY ADD COLUMN later TEXT")
    assert everything(traceview.read(path)) == plain


def test_columns_may_stand_in_any_order(tmp_path: Path) -> None:
    path = scene(NEWEST).write(tmp_path / "trace.sqlite")
    before = everything(traceview.read(path))
    for name in tables(path):
        columns = ", ".join(f'"{column}" INTEGER' for column in reversed(column_names(path, name)))
        names = ", ".join(f'"{column}"' for column in column_names(path, name))
        change(path, f"CREATE TABLE turned ({columns})", f"INSERT INTO turned ({names}) SELECT {names} FROM {name}")
        change(path, f"DROP TABLE {name}", f"ALTER TABLE turned RENAME TO {name}")
    assert everything(traceview.read(path)) == before


@pytest.mark.parametrize("suffix", ["_V2", "_V3"])
def test_tables_with_a_version_suffix_are_found(tmp_path: Path, suffix: str) -> None:
    plain = everything(traceview.read(scene(NEWEST).write(tmp_path / "plain.sqlite")))
    builder = scene(NEWEST)
    for name in ("KERNEL", "MEMCPY", "RUNTIME"):
        builder.renamed(f"CUPTI_ACTIVITY_KIND_{name}", f"CUPTI_ACTIVITY_KIND_{name}{suffix}")
    path = builder.write(tmp_path / "suffixed.sqlite")
    assert everything(traceview.read(path)) == plain
    assert {"kernels", "copies", "api_calls"} <= set(traceview.read(path).capture.captured)


def tables(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]


def column_names(path: Path, table: str) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


@pytest.mark.parametrize("table", list(LAYOUTS[NEWEST].tables))
def test_each_table_may_be_missing(table: str, tmp_path: Path) -> None:
    path = scene(NEWEST, lazy=False).write(tmp_path / "trace.sqlite")
    whole = everything(traceview.read(path))
    found = everything(traceview.read(change(path, f"DROP TABLE {table}")))
    held = {
        "CUPTI_ACTIVITY_KIND_KERNEL": "operations",
        "CUPTI_ACTIVITY_KIND_MEMCPY": "operations",
        "CUPTI_ACTIVITY_KIND_MEMSET": "operations",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "calls",
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": "event_waits",
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": "event_records",
        "NVTX_EVENTS": "ranges",
    }
    named = {"StringIds", "CUDA_CALLCHAINS"}
    if table in held:
        assert len(found[held[table]]) < len(whole[held[table]])
    elif table not in named:
        assert found == whole
    spans = [(row["kind"], row["start"], row["end"]) for row in found["operations"]]
    assert all(span in [(row["kind"], row["start"], row["end"]) for row in whole["operations"]] for span in spans)


_PLACE = ("deviceId", "contextId", "streamId", "correlationId", "globalPid")
REQUIRED = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ("start", "end", *_PLACE, "demangledName"),
    "CUPTI_ACTIVITY_KIND_MEMCPY": ("start", "end", *_PLACE, "bytes", "copyKind"),
    "CUPTI_ACTIVITY_KIND_MEMSET": ("start", "end", *_PLACE, "bytes"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start", "end", "nameId", "globalTid", "correlationId", "eventClass"),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": ("start", "end", *_PLACE),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (*_PLACE, "eventId"),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (*_PLACE, "eventId"),
    "NVTX_EVENTS": ("start", "end", "eventType", "globalTid"),
}
"""Columns that every version has and without which the others would be told wrongly; their values may be NULL."""


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in REQUIRED for column in REQUIRED[table]])
def test_a_missing_column_that_every_version_has_is_named(table: str, column: str, tmp_path: Path) -> None:
    path = scene(NEWEST, lazy=False).write(tmp_path / "trace.sqlite")
    change(path, f"ALTER TABLE {table} DROP COLUMN {column}")
    with pytest.raises(InputError, match=rf"{table} .*{column}") as caught:
        traceview.read(path)
    assert caught.value.hint


OPTIONAL = [
    (table, column.name)
    for table, columns in LAYOUTS[NEWEST].tables.items()
    for column in columns
    if table.startswith(("CUPTI", "NVTX")) and column.name not in REQUIRED.get(table, ())
]


@pytest.mark.parametrize(("table", "column"), OPTIONAL)
def test_any_other_column_may_be_missing(table: str, column: str, tmp_path: Path) -> None:
    path = scene(NEWEST).graph(2100, 2200).write(tmp_path / "trace.sqlite")
    whole = traceview.read(path)
    found = traceview.read(change(path, f'ALTER TABLE {table} DROP COLUMN "{column}"'))
    assert [row["start"] for row in operations(found)] == [row["start"] for row in operations(whole)]
    assert found.operations.n_bytes.tolist() == whole.operations.n_bytes.tolist()
