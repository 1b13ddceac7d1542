"""Columns come out the same whichever way they are read."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from plain_trace import everything
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview.errors import InputError
from traceview.nsys import columns, streaming

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.sqlite"))


@pytest.fixture
def streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every export be read through the driver that is otherwise for large ones."""
    monkeypatch.setattr(columns, "STREAMED_BYTES", 0)


@pytest.mark.parametrize("path", SAMPLES[:6], ids=lambda path: path.stem)
def test_whole_columns_equal_single_rows(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_rows = everything(traceview.read(path))
    monkeypatch.setattr(columns, "STREAMED_BYTES", 0)
    assert everything(traceview.read(path)) == by_rows


@pytest.mark.usefixtures("streamed")
def test_nothing_is_written_beside_the_export(tmp_path: Path) -> None:
    path = layered_forward(TraceBuilder(), start=0, loads=[[(5, 9)]], computes=[[(50, 60)]]).write(
        tmp_path / "t.sqlite"
    )
    before = path.read_bytes()
    traceview.read(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("value", ["words", b"bytes", 1.5, 2.0**63])
@pytest.mark.parametrize("late", [False, True])
def test_what_is_no_integer_is_one_error(value: object, late: bool, tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(70_000 if late else 1):
        builder.kernel(10 * number, 10 * number + 5)
    path = builder.write(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE k AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
        connection.execute("ALTER TABLE k RENAME TO CUPTI_ACTIVITY_KIND_KERNEL")
        update = "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = ? WHERE rowid = (SELECT MAX(rowid) FROM {})"
        connection.execute(update.format("CUPTI_ACTIVITY_KIND_KERNEL"), (value,))
    with pytest.raises(InputError, match="no integer"):
        traceview.read(path)


@pytest.mark.usefixtures("streamed")
def test_large_tables_come_in_order_and_whole(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(70_000):
        builder.kernel(10 * number, 10 * number + 5)
    operations = traceview.read(builder.write(tmp_path / "t.sqlite")).operations
    np.testing.assert_array_equal(operations.start, 10 * np.arange(70_000))


@pytest.fixture
def short_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let few rows be many ranges of row numbers."""
    monkeypatch.setattr(streaming, "BATCH_ROWS", 8)


@pytest.mark.usefixtures("streamed", "short_ranges")
@pytest.mark.parametrize("kept", ["TRUE", "rowid < 9", "rowid % 10 <> 0", "rowid NOT BETWEEN 10 AND 70"])
@pytest.mark.parametrize("shift", [0, -50, 1 << 40])
def test_row_numbers_may_begin_anywhere_and_have_gaps(kept: str, shift: int, tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(100):
        builder.kernel(10 * number, 10 * number + 5)
    path = builder.write(tmp_path / "t.sqlite")
    table = "CUPTI_ACTIVITY_KIND_KERNEL"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"DELETE FROM {table} WHERE NOT ({kept})")
        for step in (1 << 41, shift - (1 << 41)):  # by way of numbers that are free
            connection.execute(f"UPDATE {table} SET rowid = rowid + ?", (step,))
        expected = [start for (start,) in connection.execute(f"SELECT start FROM {table} ORDER BY rowid")]
    assert traceview.read(path).operations.start.tolist() == expected


@pytest.mark.usefixtures("streamed")
@pytest.mark.parametrize("last", [(1 << 63) - 1, 1 << 62])
def test_rows_at_both_ends_of_all_row_numbers_are_read(last: int, tmp_path: Path) -> None:
    path = TraceBuilder().kernel(0, 5).kernel(10, 15).write(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = ? WHERE start = 10", (last,))
        connection.execute("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET rowid = ? WHERE start = 0", (-last,))
    assert traceview.read(path).operations.start.tolist() == [0, 10]


@pytest.mark.usefixtures("streamed")
def test_a_table_without_row_numbers_is_read(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(0, 5).kernel(10, 15).write(tmp_path / "t.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        [(made,)] = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'")
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO k")
        connection.execute(f"{made[: made.rindex(')')]}, PRIMARY KEY (start, end)) WITHOUT ROWID")
        connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM k")
        connection.execute("DROP TABLE k")
    assert traceview.read(path).operations.start.tolist() == [0, 10]
