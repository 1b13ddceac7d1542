"""Input that is no export: one error that says what happened and what to do, and never another exception."""

from __future__ import annotations

import os
import sqlite3
import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from export_writer import change
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from layouts import LAYOUTS
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview.errors import InputError
from traceview.model import Kind

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Trace

PAGE = 4096


def scene() -> TraceBuilder:
    builder = TraceBuilder().gpu(0, "NVIDIA H200").stack(1, [("free", "libcudart.so")])
    layered_forward(builder, start=0, loads=[[(100, 200)], [(200, 300)]], computes=[[(200, 250)], [(300, 400)]])
    builder.record(5, stream=13, call=(60, 61), sync=8).wait(5, stream=7, call=(62, 63), sync=8)
    builder.api("cudaFree_v3020", 410, 420, correlation=9).memset(405, 406).graph(420, 430).migration(440, 450)
    return builder.api("cudaFree", 409, 421, correlation=9, eventClass=67, callchainId=1)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return scene().write(tmp_path / "trace.sqlite")


def refused(path: Path | str, message: str) -> InputError:
    with pytest.raises(InputError, match=message) as caught:
        traceview.read(path)
    assert caught.value.hint
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_missing_file(tmp_path: Path) -> None:
    refused(tmp_path / "none.sqlite", "no such file")
    refused(tmp_path / "no folder" / "none.sqlite", "no such file")


def test_a_file_below_a_file(export: Path) -> None:
    refused(export / "trace.sqlite", "cannot be read: Not a directory")


def test_a_directory(tmp_path: Path) -> None:
    refused(tmp_path, "is a directory")


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.sqlite").touch()
    refused(tmp_path / "empty.sqlite", "is empty")


@pytest.mark.parametrize("content", [b"x", b"time,kernel\n1,2\n", b"SQLite format 2\0" * 10, b"\0" * 8192])
def test_a_file_that_is_not_sqlite(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.sqlite").write_bytes(content)
    refused(tmp_path / "other.sqlite", "is not an SQLite file")


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sqlite")
    raised: list[InputError] = []
    reader = threading.Thread(target=lambda: raised.append(refused(tmp_path / "pipe.sqlite", "no regular file")))
    reader.daemon = True
    reader.start()
    reader.join(timeout=20)
    assert raised


def test_a_path_that_no_file_can_have() -> None:
    refused("nul\0inside.sqlite", "is no path")
    refused("x" * 5000, "cannot be read: File name too long")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission(export: Path) -> None:
    export.chmod(0)
    refused(export, "cannot be read: Permission denied")


def test_sqlite_that_is_no_export(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as connection:
        connection.execute("CREATE TABLE cities (name)")
    refused(tmp_path / "other.sqlite", "is no Nsight Systems export")


@pytest.mark.parametrize("lazy", [True, False])
def test_an_export_without_cuda(tmp_path: Path, lazy: bool) -> None:
    path = TraceBuilder(lazy=lazy).range("forward 0", 0, 5).write(tmp_path / "trace.sqlite")
    error = refused(path, "neither GPU work nor CUDA API calls")
    assert "--trace=cuda" in error.hint


@pytest.mark.parametrize("suffix", ["-journal", "-wal"])
def test_an_export_that_is_still_being_written(export: Path, suffix: str) -> None:
    beside = export.with_name(export.name + suffix)
    beside.write_bytes(b"pages to come")
    refused(export, "still being written")


def test_an_export_that_is_still_being_written_behind_a_link(export: Path, tmp_path: Path) -> None:
    export.with_name("trace.sqlite-wal").touch()
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.sqlite"
    link.symlink_to(export)
    refused(link, "still being written")


def test_a_finished_export_in_wal_mode_is_read(export: Path) -> None:
    with closing(sqlite3.connect(export)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE one_more (x)")
        connection.commit()
    assert not export.with_name("trace.sqlite-wal").exists()
    assert len(traceview.read(export).operations) == 6


def test_a_file_cut_off_at_any_page(export: Path) -> None:
    whole = export.read_bytes()
    for size in (1, 15, 16, 99, 100, 101, *range(PAGE, len(whole), PAGE), len(whole) - 1):
        export.write_bytes(whole[:size])
        refused(export, "truncated|not an SQLite file")


def test_a_cut_off_file_whose_header_promises_no_size(export: Path) -> None:
    whole = bytearray(export.read_bytes())
    whole[92:96] = b"\0\0\0\1"
    for size in range(PAGE, len(whole), PAGE):
        export.write_bytes(whole[:size])
        answered_or_refused(export)


def answered_or_refused(path: Path) -> None:
    """Read a damaged file: a trace or one clear error, nothing else."""
    try:
        answer: Trace | InputError = traceview.read(path)
    except InputError as error:
        answer = error
    if isinstance(answer, InputError):
        assert answer.hint
        assert "\n" not in str(answer)
    else:
        assert (answer.operations.end >= answer.operations.start).all()
        assert (answer.operations.launch < len(answer.calls)).all()


def test_any_one_page_overwritten(export: Path) -> None:
    whole = export.read_bytes()
    for filling in (b"\0", b"\xff", b"\x0d"):
        for start in range(PAGE, len(whole), PAGE):
            export.write_bytes(whole[:start] + filling * PAGE + whole[start + PAGE :])
            answered_or_refused(export)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=30))
def test_any_bytes_flipped(flips: list[tuple[float, int]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = scene().write(tmp_path_factory.getbasetemp() / "flipped.sqlite")
    damaged = bytearray(path.read_bytes())
    for place, change_by in flips:
        damaged[int(place * len(damaged))] ^= change_by
    path.write_bytes(damaged)
    answered_or_refused(path)


COLUMNS = [
    ("CUPTI_ACTIVITY_KIND_KERNEL", "start"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "gridX"),
    ("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName"),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "end"),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "bytes"),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "copyKind"),
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "correlationId"),
    ("CUPTI_ACTIVITY_KIND_MEMSET", "globalPid"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "start"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "globalTid"),
    ("CUPTI_ACTIVITY_KIND_RUNTIME", "nameId"),
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "streamId"),
    ("CUPTI_ACTIVITY_KIND_CUDA_EVENT", "eventId"),
    ("NVTX_EVENTS", "start"),
    ("NVTX_EVENTS", "globalTid"),
]


@pytest.mark.parametrize(("table", "column"), COLUMNS)
@pytest.mark.parametrize("value", ["'twelve'", "x'0102'", "1.5", "9223372036854775808", "'1e999'"])
def test_a_value_that_is_no_integer_is_refused(export: Path, table: str, column: str, value: str) -> None:
    change(export, f"UPDATE {table} SET {column} = {value} WHERE rowid = 1")
    error = refused(export, "is no integer")
    assert table in error.message


@pytest.mark.parametrize("value", ["'12'", "1.0"])
def test_an_integer_in_other_words_is_the_integer(export: Path, value: str) -> None:
    """The columns' affinity makes SQLite itself store these as integers."""
    change(export, f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = {value} WHERE rowid = 1")
    assert int(float(value.strip("'"))) in traceview.read(export).operations.start.tolist()


@pytest.mark.parametrize(("table", "column"), [pair for pair in COLUMNS if pair[1] in {"start", "end", "bytes"}])
def test_a_row_without_a_time_or_size_is_refused(export: Path, table: str, column: str) -> None:
    with_nulls(export, table)
    change(export, f"UPDATE {table} SET {column} = NULL WHERE rowid = 1")
    refused(export, f"{table} (has a row without {column}|holds a value that is no integer)")


@pytest.mark.parametrize(("table", "column"), [pair for pair in COLUMNS if pair[1] in {"start", "end", "bytes"}])
@pytest.mark.parametrize("value", [-(1 << 63) + 1, -(1 << 61) - 1, (1 << 63) - 1, (1 << 61) + 1])
def test_a_time_or_size_that_cannot_be_is_refused(export: Path, table: str, column: str, value: int) -> None:
    """Sums and differences of such numbers would wrap around to others that look possible."""
    change(export, f"UPDATE {table} SET {column} = {value} WHERE rowid = 1")
    refused(export, f"{table} has a row (with {column}|from) {value}")


@pytest.mark.parametrize("pieces", [0, -1, (1 << 63) - 1])
def test_a_row_stands_for_at_least_one_copy(export: Path, pieces: int) -> None:
    change(export, f"UPDATE CUPTI_ACTIVITY_KIND_MEMCPY SET copyCount = {pieces}")
    found = traceview.read(export).operations
    assert (found.pieces[found.kind == Kind.COPY] >= 1).all()


@pytest.mark.parametrize(
    ("table", "column"),
    [("KERNEL", "correlationId"), ("KERNEL", "globalPid"), ("MEMCPY", "srcKind"), ("RUNTIME", "globalTid")],
)
def test_a_row_without_what_may_be_missing_is_kept(export: Path, table: str, column: str) -> None:
    before = len(traceview.read(export).operations)
    change(export, f"UPDATE CUPTI_ACTIVITY_KIND_{table} SET {column} = NULL")
    assert len(traceview.read(export).operations) == before


def with_nulls(path: Path, table: str) -> None:
    """Take NOT NULL and primary keys from a table's columns, so that they may hold anything."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        plain = "replace(replace(sql, ' NOT NULL', ''), ' PRIMARY KEY', '')"
        connection.execute(f"UPDATE sqlite_master SET sql = {plain} WHERE name = ?", (table,))
        connection.commit()


@pytest.mark.parametrize("value", [-(1 << 63), (1 << 63) - 1, -1, 1 << 40])
@pytest.mark.parametrize(("table", "column"), [pair for pair in COLUMNS if pair[1] not in {"start", "end", "bytes"}])
def test_ids_that_point_nowhere_do_no_harm(export: Path, table: str, column: str, value: int) -> None:
    change(export, f"UPDATE {table} SET {column} = {value} WHERE rowid = 1")
    answered_or_refused(export)


@pytest.mark.parametrize("table", LAYOUTS["3.20.3"].tables)
def test_any_cell_of_any_table_may_hold_anything(table: str, tmp_path: Path) -> None:
    path = scene().mark('facts {"gpu": "H200"}', 5, domain="traceview").write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(path)) as connection:
        columns = [name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    with_nulls(path, table)
    whole = path.read_bytes()
    for column in columns:
        last = f"WHERE rowid = (SELECT max(rowid) FROM {table})"
        for value in ("NULL", "x'00ff'", f"1.5 {last}", f"4611686018427387904 {last}"):
            path.write_bytes(whole)
            change(path, f'UPDATE {table} SET "{column}" = {value}')
            answered_or_refused(path)


@pytest.mark.parametrize("word", ["strings", "enumeration"])
def test_texts_of_the_wrong_type_do_no_harm(export: Path, word: str) -> None:
    table, column = {"strings": ("StringIds", "value"), "enumeration": ("ENUM_CUDA_MEMCPY_OPER", "name")}[word]
    for value in ("x'00ff'", "17", "1.5", "''"):
        change(export, f"UPDATE {table} SET {column} = {value}")
        answered_or_refused(export)


def test_python_frames_that_are_none_are_no_stack(tmp_path: Path) -> None:
    domain = "Python Backtrace on CUDA"
    for payload in (
        '{"%s": {"Frames": [{"Function": 1e999, "File": 1, "Line": 1}]}}',
        "[" * 100_000,
        "{}",
        "7",
        "null",
    ):
        builder = scene().mark("", 409, domain=domain, jsonText=payload.replace("%s", domain))
        stacks = traceview.read(builder.write(tmp_path / "trace.sqlite")).stacks
        assert [stack.python for stack in stacks] == [()]


def test_facts_that_nest_without_end_are_none(tmp_path: Path) -> None:
    builder = scene().mark("facts " + '{"a":' * 100_000 + "1" + "}" * 100_000, 5, domain="traceview")
    assert traceview.read(builder.write(tmp_path / "trace.sqlite")).capture.facts is None


def test_a_virtual_table_or_a_table_without_rowids_is_read_or_refused(tmp_path: Path) -> None:
    path = TraceBuilder().api("cudaFree", 1, 2).write(tmp_path / "trace.sqlite")
    columns = "start INTEGER PRIMARY KEY, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName"
    change(path, f"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL ({columns}) WITHOUT ROWID")
    change(path, "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 0, 1, 7, 3, 4, 5)")
    assert traceview.read(path).operations.end.tolist() == [9]
