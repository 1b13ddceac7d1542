"""Keeping one process, one device or one window of a trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from trace_builder import TraceBuilder

import traceview
from traceview.errors import SelectionError, UsageError
from traceview.selection import select_device, select_process, select_window

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Trace

MS = 1_000_000


@pytest.fixture
def two_ranks(tmp_path: Path) -> Trace:
    """Two processes that use the same device number, stream numbers and correlation ids."""
    builder = TraceBuilder().gpu(0, "H200").gpu(1, "H200")
    for process, at in ((100, 0), (200, 1000)):
        one = {"process": process}
        builder.range("forward 0", at, at + 50, **one)
        builder.kernel(at + 20, at + 30, call=(at + 1, at + 2), correlation=1, **one)
        builder.copy(at + 30, at + 40, call=(at + 3, at + 4), correlation=2, **one)
        builder.record(1, stream=13, call=(at + 5, at + 6), correlation=3, **one)
        builder.wait(1, stream=7, call=(at + 7, at + 8), correlation=4, **one)
        builder.stream_sync(stream=7, call=(at + 9, at + 45), correlation=5, **one)
        builder.migration(at + 41, at + 42, **one)
    return traceview.read(builder.write(tmp_path / "ranks.sqlite"))


def launches(trace: Trace) -> list[tuple[int, int | None]]:
    """Return (operation start, start of its launch)."""
    starts = [None if row < 0 else int(trace.calls.start[row]) for row in trace.operations.launch.tolist()]
    return list(zip(trace.operations.start.tolist(), starts, strict=True))


def test_a_process_keeps_its_own_rows_and_their_launches(two_ranks: Trace) -> None:
    second = select_process(two_ranks, 200)
    assert second.capture.processes == (200,)
    assert launches(second) == [(1020, 1001), (1030, 1003)]
    assert second.calls.start.tolist() == [1001, 1003, 1005, 1007, 1009]
    assert second.ranges.start.tolist() == [1000]
    assert second.migrations.start.tolist() == [1041]
    for table, start in ((second.event_records, 1005), (second.event_waits, 1007), (second.stream_syncs, 1009)):
        assert second.calls.start[table.call].tolist() == [start]


def test_both_processes_together_are_the_whole_trace(two_ranks: Trace) -> None:
    parts = [select_process(two_ranks, process) for process in (100, 200)]
    assert [call for part in parts for call in launches(part)] == launches(two_ranks)
    assert sum(len(part.calls) for part in parts) == len(two_ranks.calls)


def test_an_unknown_process_lists_the_known_ones(two_ranks: Trace) -> None:
    with pytest.raises(SelectionError, match="no process 300") as caught:
        select_process(two_ranks, 300)
    assert caught.value.hint == "there is: 100, 200"


def test_a_device_keeps_its_work_and_peer_copies_that_touch_it(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 10).kernel(0, 12, device=1, context=2)
    builder.copy(5, 9, "p2p", device=1, context=2, srcDeviceId=1, dstDeviceId=0)
    trace = traceview.read(builder.write(tmp_path / "peers.sqlite"))
    assert select_device(trace, 0).operations.end.tolist() == [10, 9]
    assert select_device(trace, 1).operations.end.tolist() == [12, 9]
    assert list(select_device(trace, 1).capture.devices) == [1]


def test_an_unknown_device_lists_the_known_ones(two_ranks: Trace) -> None:
    with pytest.raises(SelectionError, match="no device 7") as caught:
        select_device(two_ranks, 7)
    assert caught.value.hint == "there is: 0"


@pytest.fixture
def spread(tmp_path: Path) -> Trace:
    """Calls early, work late; the first event is at 5 ms on the capture's clock."""
    builder = TraceBuilder()
    for number in range(4):
        at = 5 * MS + number * MS
        builder.kernel(at + 4 * MS, at + 5 * MS, call=(at, at + 10)).range(f"forward {number}", at, at + MS)
    return traceview.read(builder.write(tmp_path / "spread.sqlite"))


def test_a_window_counts_from_the_first_event_and_keeps_the_launches_of_its_work(spread: Trace) -> None:
    part = select_window(spread, (4.5, 5.5))
    assert launches(part) == [(9 * MS, 5 * MS), (10 * MS, 6 * MS)]
    assert len(part.calls) == 2
    assert len(part.ranges) == 0


def test_what_only_touches_a_window_is_outside(spread: Trace) -> None:
    part = select_window(spread, (5.0, 6.0))
    assert part.operations.start.tolist() == [10 * MS]


def test_work_whose_launch_fell_out_of_the_selection_has_none(two_ranks: Trace) -> None:
    part = select_window(two_ranks, (0, 0.000_01))
    assert launches(part) == []
    assert part.calls.start.tolist() == [1, 3, 5, 7, 9]
    assert part.calls.start[part.event_records.call].tolist() == [5]


def test_a_window_without_events_says_how_long_the_trace_is(spread: Trace) -> None:
    with pytest.raises(SelectionError, match="nothing lies in this window") as caught:
        select_window(spread, (100, 200))
    assert caught.value.hint == "the trace spans 0:8.000 ms"


@pytest.mark.parametrize("window", [(2, 1), (1, 1), (float("nan"), 1)])
def test_a_window_that_ends_before_it_begins_is_wrong_usage(spread: Trace, window: tuple[float, float]) -> None:
    with pytest.raises(UsageError, match="ends before it begins"):
        select_window(spread, window)


def test_a_window_may_be_open_ended(spread: Trace) -> None:
    assert len(select_window(spread, (6.5, float("inf"))).operations) == 2
    assert len(select_window(spread, (float("-inf"), float("inf"))).operations) == 4


def test_reading_applies_the_selection(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 10, process=100).kernel(0, 20, process=200).kernel(30, 40, process=200)
    path = builder.write(tmp_path / "trace.sqlite")
    part = traceview.read(path, process=200, device=0, window_ms=(0, 0.000_025))
    assert part.operations.end.tolist() == [20]
