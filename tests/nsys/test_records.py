"""Decoding rows from a file's pages gives what SQLite gives, or leaves it to SQLite."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceview.nsys.pages import UnusualPageError
from traceview.nsys.records import decoded_blocks, stored_table

if TYPE_CHECKING:
    from pathlib import Path

NULL = -12345
VALUES = st.one_of(
    st.none(),
    st.sampled_from(
        [0, 1, -1, 127, 128, -128, -129, 32767, 32768, 2**23, 2**31, 2**47, -(2**47) - 1, 2**63 - 1, -(2**63)]
    ),
    st.integers(-(2**63), 2**63 - 1),
)


def write(path: Path, rows: list[tuple], columns: str = "a INTEGER, b INT, c BIGINT", page_size: int = 512) -> Path:
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA page_size = {page_size}")
        connection.execute(f"CREATE TABLE t ({columns})")
        if rows:
            connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
        connection.commit()
    return path


def decode(path: Path, *names: str) -> list[tuple[int, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        table = stored_table(connection, "t")
    assert table is not None
    blocks = [block.columns for block in decoded_blocks(path, table, dict.fromkeys(names, NULL))]
    return list(zip(*(np.concatenate([block[name] for block in blocks]).tolist() for name in names), strict=True))


def filled(rows: list[tuple]) -> list[tuple]:
    return [tuple(NULL if value is None else value for value in row) for row in rows]


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=300), page_size=st.sampled_from([512, 4096]))
def test_integers_of_every_size_and_null_come_out_as_they_went_in(tmp_path_factory, rows, page_size):
    path = write(tmp_path_factory.mktemp("db") / "t.sqlite", rows, page_size=page_size)
    assert decode(path, "a", "b", "c") == filled(rows)
    assert decode(path, "b") == [(row[1],) for row in filled(rows)]


def test_a_tree_of_several_levels_is_walked_in_row_order(tmp_path):
    rows = [(number, number % 7, None) for number in range(20_000)]
    assert decode(write(tmp_path / "t.sqlite", rows), "a", "b", "c") == filled(rows)


@pytest.mark.parametrize("rows", [[(1, 2, 3)], [(10**15, None, 0)] * 5_000])
def test_the_largest_page_size_is_read(tmp_path, rows):
    assert decode(write(tmp_path / "t.sqlite", rows, page_size=65_536), "a", "b", "c") == filled(rows)


def test_row_numbers_of_any_length_are_skipped(tmp_path):
    path = write(tmp_path / "t.sqlite", [])
    numbers = [-(2**40), -1, 1, 127, 128, 2**14, 2**21, 2**28, 2**35, 2**49, 2**63 - 1]
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany("INSERT INTO t (rowid, a) VALUES (?, ?)", [(number, number) for number in numbers])
        connection.commit()
    assert decode(path, "a") == [(number,) for number in numbers]


def test_text_and_numbers_between_the_wanted_columns_are_stepped_over(tmp_path):
    rows = [(number, "x" * (number % 50), 0.5, b"blob", number * 3) for number in range(1_000)]
    path = write(tmp_path / "t.sqlite", rows, "a INTEGER, t TEXT, r REAL, x BLOB, b INTEGER")
    assert decode(path, "a", "b") == [(row[0], row[4]) for row in rows]


@pytest.mark.parametrize("value", ["text", b"blob", 0.5, 2.0**63, "", b""])
def test_a_value_that_is_no_integer_is_left_to_sqlite(tmp_path, value):
    path = write(tmp_path / "t.sqlite", [(1, 2, 3)] * 500 + [(1, value, 3)])
    assert len(decode(path, "a")) == 501
    with pytest.raises(UnusualPageError):
        decode(path, "b")


@pytest.mark.parametrize(
    ("columns", "name"),
    [("a INTEGER PRIMARY KEY, b INT, c INT", "a"), ("a REAL, b INT, c INT", "a"), ("a, b INT, c INT", "a")],
)
def test_a_column_that_is_not_stored_as_an_integer_is_left_to_sqlite(tmp_path, columns, name):
    path = write(tmp_path / "t.sqlite", [(1, 2, 3)], columns)
    assert decode(path, "b", "c") == [(2, 3)]
    with pytest.raises(UnusualPageError):
        decode(path, name)


def test_a_row_that_goes_on_elsewhere_is_left_to_sqlite(tmp_path):
    path = write(tmp_path / "t.sqlite", [(1, "x" * 5_000, 3)], "a INTEGER, t TEXT, c INTEGER")
    with pytest.raises(UnusualPageError):
        decode(path, "a")


def test_a_column_that_was_added_later_is_left_to_sqlite(tmp_path):
    path = write(tmp_path / "t.sqlite", [(1, 2, 3)])
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE t ADD COLUMN d INTEGER DEFAULT 9")
        connection.commit()
    with pytest.raises(UnusualPageError):
        decode(path, "d")


def test_a_table_without_row_numbers_is_left_to_sqlite(tmp_path):
    path = tmp_path / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a)) WITHOUT ROWID")
        connection.execute("INSERT INTO t VALUES (1, 2)")
        connection.commit()
    with pytest.raises(UnusualPageError):
        decode(path, "b")


def test_generated_columns_are_left_to_sqlite(tmp_path):
    path = write(tmp_path / "t.sqlite", [], "a INTEGER, b INTEGER AS (a + 1)")
    with closing(sqlite3.connect(path)) as connection:
        assert stored_table(connection, "t") is None


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_damage_is_left_to_sqlite_or_does_no_harm(tmp_path_factory, data):
    path = write(tmp_path_factory.mktemp("db") / "t.sqlite", [(n, n * n, -n) for n in range(400)])
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        content[data.draw(st.integers(512, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        found = decode(path, "a", "b", "c")
    except UnusualPageError:
        return
    with closing(sqlite3.connect(path)) as connection:
        try:
            expected = filled(connection.execute("SELECT a, b, c FROM t").fetchall())
        except sqlite3.DatabaseError:
            # SQLite looks at more of a page than the rows need; what the rows say is still what they say
            return
    assert found == expected
