"""The way from storage: how long each step takes, what hides it, and which one bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.forwards import find_forwards
from traceview.analysis.storage import measure_storage

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.report_links import Stage, Storage

LOADS, COMPUTES = [[(100, 140)], [(140, 180)]], [[(140, 200)], [(200, 260)]]


def read_range(builder: TraceBuilder, start: int, end: int, name: str = "storage read", **options: Any) -> TraceBuilder:
    return builder.range(name, start, end, domain="traceview", int64Value=64, **options)


def measured(builder: TraceBuilder, folder: Path) -> list[Storage]:
    trace = read_back(builder, folder)
    return list(measure_storage(trace, find_forwards(trace)))


def stage(found: Storage, name: str) -> Stage:
    return next(one for one in found.stages if one.stage == name)


def staged(folder: Path) -> Storage:
    """Return a forward that reads 0-30 and 40-70, stages 30-40 and 70-75, loads 100-180, computes 140-260."""
    builder = layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES, n_bytes=64, step=20)
    for start, end, name in ((1, 30, "storage read"), (30, 40, "stage"), (40, 70, "storage read"), (70, 75, "stage")):
        read_range(builder, start, end, name)
    [found] = measured(builder, folder)
    return found


def test_each_step_is_timed_with_its_bytes(tmp_path: Path) -> None:
    found = staged(tmp_path)
    assert [one.stage for one in found.stages] == ["storage read", "stage", "h2d", "compute"]
    assert [one.busy_ns for one in found.stages] == [59, 15, 80, 120]
    assert [one.n_bytes for one in found.stages] == [128, 128, 128, None]
    assert (found.straight, found.bounded_by) == (False, "compute")


def test_what_hides_behind_another_step_and_behind_compute(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES, step=40)
    read_range(builder, 1, 120)
    read_range(builder, 150, 170)
    [found] = measured(builder, tmp_path)
    assert (stage(found, "storage read").busy_ns, stage(found, "storage read").hidden_ns) == (139, 40)
    assert stage(found, "storage read").under_compute_ns == 20
    assert stage(found, "h2d").hidden_ns == 20 + 40
    assert stage(found, "compute").under_compute_ns == 0


def test_without_a_stage_storage_wrote_straight_into_the_pool(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES, step=20)
    [found] = measured(read_range(builder, 1, 50), tmp_path)
    assert found.straight
    assert [one.stage for one in found.stages] == ["storage read", "h2d", "compute"]


@pytest.mark.parametrize(
    ("read_end", "stage_thread", "bound"),
    [
        (200, None, "storage read"),
        # reading for 80 and staging for 70 take turns on one thread: 150 is more than the 120 of compute
        (81, None, "storage read"),
        # on two threads they do not
        (81, 77, "compute"),
        (21, None, "compute"),
    ],
)
def test_the_step_that_takes_longest_bounds(
    read_end: int, stage_thread: int | None, bound: str, tmp_path: Path
) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES, step=60)
    read_range(builder, 1, read_end)
    start = read_end if stage_thread is None else 1
    read_range(builder, start, start + 70, "stage", thread=stage_thread)
    [found] = measured(builder, tmp_path)
    assert found.bounded_by == bound


def test_a_thread_that_reads_ahead_belongs_to_the_forward_it_starts_in(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES, step=20)
    read_range(builder, 1, 30, thread=88)
    read_range(builder, 900, 950, thread=88)
    read_range(builder, 2, 30, process=9)
    [found] = measured(builder, tmp_path)
    assert stage(found, "storage read").busy_ns == 29


def test_the_payload_of_another_domain_is_no_number_of_bytes(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES, step=20)
    [found] = measured(builder.range("storage read", 1, 50, int64Value=3), tmp_path)
    assert stage(found, "storage read").n_bytes is None


def test_a_trace_without_storage_has_no_such_section(tmp_path: Path) -> None:
    assert measured(layered_forward(TraceBuilder(), start=0, loads=LOADS, computes=COMPUTES), tmp_path) == []
