"""What runs at the same time: streams, classes, scopes; every number can be counted in the drawing beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis import overlap
from traceview.analysis.overlap import measure_overlap, stream_labels
from traceview.analysis.report import build_report

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.report import ExposedCopy, Overlap

KERNELS, LOADS = "4711/0/7", "4711/0/13"


def beside() -> TraceBuilder:
    """Write copies of 60 ns, 25 of them under a kernel.

    ::

        stream 7    ██████··██··
        stream 13   ···████████·     one character is 5 ns, the first stands for 100
    """
    builder = TraceBuilder().kernel(100, 130, call=(1, 2)).kernel(140, 150, call=(3, 4))
    return builder.copy(115, 155, "h2d", call=(5, 6)).copy(160, 180, "h2d", call=(7, 8))


def measured(builder: TraceBuilder, folder: Path) -> tuple[tuple[Overlap, ...], tuple[ExposedCopy, ...]]:
    return measure_overlap(read_back(builder, folder))


def test_overlap_is_the_time_in_which_both_run(tmp_path: Path) -> None:
    pairs, _ = measured(beside(), tmp_path)
    found = {(pair.a, pair.b): (pair.busy_a_ns, pair.busy_b_ns, pair.overlap_ns) for pair in pairs}
    assert found == {(KERNELS, LOADS): (40, 60, 25), ("h2d", "compute"): (60, 40, 25)}
    assert {pair.ratio for pair in pairs} == {25 / 40}
    assert {(pair.scope, pair.process, pair.device) for pair in pairs} == {("trace", 4711, 0)}


def test_a_copy_is_exposed_where_no_kernel_runs(tmp_path: Path) -> None:
    _, (exposed,) = measured(beside(), tmp_path)
    assert (exposed.scope, exposed.copy_class, exposed.exposed_ns) == ("trace", "h2d", 35)


def test_without_compute_all_of_a_copy_is_exposed(tmp_path: Path) -> None:
    pairs, (exposed,) = measured(TraceBuilder().copy(100, 130, "d2h", call=(1, 2)), tmp_path)
    assert (pairs, exposed.copy_class, exposed.exposed_ns) == ((), "d2h", 30)


def test_work_that_never_meets_is_listed_with_no_overlap(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(100, 110, call=(1, 2)).copy(110, 130, "h2d", call=(3, 4))
    pairs, _ = measured(builder, tmp_path)
    assert [(pair.overlap_ns, pair.ratio) for pair in pairs] == [(0, 0.0), (0, 0.0)]


def test_two_kernels_at_once_are_busy_once(tmp_path: Path) -> None:
    builder = beside().kernel(120, 135, stream=9, call=(9, 10))
    pairs, _ = measured(builder, tmp_path)
    (classes,) = [pair for pair in pairs if pair.a == "h2d"]
    assert (classes.busy_b_ns, classes.overlap_ns) == (45, 30)


def test_classes_go_by_kind(tmp_path: Path) -> None:
    """A whole graph computes; a memset and a copy inside the device are classes of their own."""
    builder = TraceBuilder().graph(100, 140, call=(1, 2)).memset(110, 115, stream=9, call=(3, 4))
    builder.copy(120, 150, "d2d", stream=9, call=(5, 6))
    pairs, exposed = measured(builder, tmp_path)
    found = {(pair.a, pair.b): pair.overlap_ns for pair in pairs if "/" not in pair.a}
    assert found == {("d2d", "memset"): 0, ("d2d", "compute"): 20, ("memset", "compute"): 5}
    assert [(one.copy_class, one.exposed_ns) for one in exposed] == [("d2d", 10)]


def test_devices_are_measured_apart(tmp_path: Path) -> None:
    builder = beside().kernel(155, 180, device=1, context=2, call=(9, 10))
    pairs, exposed = measured(builder, tmp_path)
    assert {pair.device for pair in pairs} == {0}
    assert [(one.device, one.exposed_ns) for one in exposed] == [(0, 35)]


def test_a_peer_copy_counts_on_both_of_its_devices(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(100, 120, call=(1, 2)).kernel(100, 105, device=1, context=2, call=(3, 4))
    builder.copy(100, 130, "p2p", stream=13, call=(5, 6), srcDeviceId=0, dstDeviceId=1)
    pairs, exposed = measured(builder, tmp_path)
    assert {(pair.device, pair.overlap_ns) for pair in pairs if pair.a == "p2p"} == {(0, 20), (1, 5)}
    assert [(one.device, one.copy_class, one.exposed_ns) for one in exposed] == [(0, "p2p", 10), (1, "p2p", 25)]


def test_a_forward_sees_what_lies_between_its_first_and_its_last_moment(tmp_path: Path) -> None:
    """The forward lasts from its load at 115 to its kernel's end at 150; the kernel began before, the copy goes on."""
    builder = TraceBuilder().kernel(100, 130, stream=9, call=(1, 2)).range("forward 0", 10, 60)
    builder.copy(115, 125, "h2d", 4096, call=(11, 12)).kernel(140, 150, call=(13, 14))
    builder.copy(145, 180, "d2h", 4096, stream=17, call=(61, 62))
    trace = read_back(builder, tmp_path)
    pairs, exposed = measure_overlap(trace, build_report(trace).forwards)
    classes = {(pair.scope, pair.a, pair.b): (pair.busy_a_ns, pair.busy_b_ns, pair.overlap_ns) for pair in pairs}
    assert classes["trace", "h2d", "compute"] == (10, 40, 10)
    assert classes[0, "h2d", "compute"] == (10, 25, 10)
    assert classes["trace", "d2h", "compute"] == (35, 40, 5)
    assert classes[0, "d2h", "compute"] == (5, 25, 5)
    assert {(one.scope, one.copy_class): one.exposed_ns for one in exposed} == {
        ("trace", "h2d"): 0,
        (0, "h2d"): 0,
        ("trace", "d2h"): 30,
        (0, "d2h"): 0,
    }


def test_a_pair_is_left_out_of_a_forward_in_which_one_of_the_two_rests(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(100, 130, call=(11, 12)).range("forward 0", 10, 60)
    builder.copy(140, 150, "d2h", 4096, call=(61, 62))
    trace = read_back(builder, tmp_path)
    pairs, exposed = measure_overlap(trace, build_report(trace).forwards)
    assert {pair.scope for pair in pairs} == {"trace"}
    assert {one.scope for one in exposed} == {"trace"}


def test_of_many_streams_those_with_most_work_are_paired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlap, "PAIRED_STREAMS", 2)
    builder = beside().kernel(100, 200, stream=9, call=(9, 10))
    pairs, _ = measured(builder, tmp_path)
    assert [(pair.a, pair.b) for pair in pairs if "/" in pair.a] == [("4711/0/9", LOADS)]


def test_streams_of_one_number_are_told_apart_by_their_context(tmp_path: Path) -> None:
    builder = beside().kernel(200, 210, context=3, call=(9, 10))
    assert stream_labels(read_back(builder, tmp_path)) == ["4711/0/1.0/7", LOADS, "4711/0/3.0/7"]
