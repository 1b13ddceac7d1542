"""NVTX ranges: names however they are stored, domains, payloads, ranges that were never closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from export_writer import change
from plain_trace import ranges, read_back
from trace_builder import TraceBuilder

import traceview

if TYPE_CHECKING:
    from pathlib import Path


def some_work() -> TraceBuilder:
    return TraceBuilder().kernel(90, 100)


def test_a_name_stands_in_the_row_or_among_the_strings(tmp_path: Path) -> None:
    builder = some_work().range("forward 0", 0, 50).range("load layer 0", 1, 5, registered=True)
    assert [row["name"] for row in ranges(read_back(builder, tmp_path))] == ["forward 0", "load layer 0"]


def test_a_range_without_any_name_has_an_empty_one(tmp_path: Path) -> None:
    builder = some_work().range(None, 0, 50).range(None, 1, 2, textId=987654)
    assert [row["name"] for row in ranges(read_back(builder, tmp_path))] == ["", ""]


@pytest.mark.parametrize("column", ["text", "textId"])
def test_an_export_may_have_only_one_of_the_two_columns(tmp_path: Path, column: str) -> None:
    path = some_work().range("forward 0", 0, 50, registered=column == "textId").write(tmp_path / "trace.sqlite")
    change(path, f"ALTER TABLE NVTX_EVENTS DROP COLUMN {'text' if column == 'textId' else 'textId'}")
    assert [row["name"] for row in ranges(traceview.read(path))] == ["forward 0"]


def test_only_push_pop_and_start_end_ranges_are_ranges(tmp_path: Path) -> None:
    builder = some_work().mark("a mark", 3)
    for number in (33, 35, 36, 37, 38, 39, 59, 60, 75, 76, 97, 98, 99):
        builder.range(f"type {number}", 0, 9, eventType=number)
    assert [row["name"] for row in ranges(read_back(builder, tmp_path))] == ["type 59", "type 60"]


def test_a_domain_is_named_by_its_own_process(tmp_path: Path) -> None:
    builder = some_work()
    builder.range("a", 0, 9, process=100, domain="first").range("b", 1, 8, process=200, domain="second")
    builder.range("c", 2, 7, process=100)
    found = {row["name"]: row["domain"] for row in ranges(read_back(builder, tmp_path))}
    assert found == {"a": "first", "b": "second", "c": None}


def test_a_domain_that_nobody_named_is_none(tmp_path: Path) -> None:
    builder = some_work().range("a", 0, 9, domainId=44)
    assert [row["domain"] for row in ranges(read_back(builder, tmp_path))] == [None]


@pytest.mark.parametrize("column", ["uint64Value", "int64Value", "uint32Value", "int32Value"])
def test_a_payload_may_be_of_any_integer_type(tmp_path: Path, column: str) -> None:
    builder = some_work().range("a", 0, 9, **{column: 42}).range("b", 1, 2)
    assert [row["payload"] for row in ranges(read_back(builder, tmp_path))] == [42, -1]


def test_ranges_stand_by_start_and_the_outer_one_first(tmp_path: Path) -> None:
    builder = some_work().range("late", 5, 6).range("inner", 0, 3).range("outer", 0, 9).range("early", -7, 9)
    assert [row["name"] for row in ranges(read_back(builder, tmp_path))] == ["early", "outer", "inner", "late"]


def test_a_range_that_was_never_closed_ends_with_the_trace(tmp_path: Path) -> None:
    builder = some_work().range("open", 10, None).range("closed", 20, 130)
    trace = read_back(builder, tmp_path)
    assert [(row["name"], row["end"]) for row in ranges(trace)] == [("open", 130), ("closed", 130)]
    assert trace.end_ns == 130


def test_a_range_that_was_never_closed_ends_with_the_trace_before_0_too(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(-90, -80).range("open", -100, None)
    trace = read_back(builder, tmp_path)
    assert trace.ranges.end.tolist() == [-80]
    assert (trace.start_ns, trace.end_ns) == (-100, -80)


def test_a_range_that_opens_after_all_work_ends_where_it_starts(tmp_path: Path) -> None:
    assert read_back(some_work().range("open", 500, None), tmp_path).ranges.end.tolist() == [500]


def test_a_thread_that_only_opens_ranges_is_a_thread_of_the_trace(tmp_path: Path) -> None:
    builder = some_work().range("load layer 0", 0, 9, thread=55)
    trace = read_back(builder, tmp_path)
    assert [row["thread"] for row in ranges(trace)] == [(4711, 55)]


def test_awkward_names_come_through_as_they_are(tmp_path: Path) -> None:
    names = ["line\nbreak", "nul\0inside", "\x1b[31mred", "\u202eright to left", "=1+1", "<b>&amp;"]
    builder = some_work()
    for at, name in enumerate(names):
        builder.range(name, at, 50)
    assert [row["name"] for row in ranges(read_back(builder, tmp_path))] == names


def test_a_name_that_is_no_unicode_is_replaced_where_it_is_none(tmp_path: Path) -> None:
    path = some_work().range("x", 0, 9).write(tmp_path / "trace.sqlite")
    change(path, "UPDATE NVTX_EVENTS SET text = CAST(X'666fff6f' AS TEXT)")
    assert [row["name"] for row in ranges(traceview.read(path))] == ["fo\ufffdo"]
