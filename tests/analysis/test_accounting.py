"""Where the time of a forward goes: one cause a scene, numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.accounting import account
from traceview.analysis.forwards import find_forwards
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.analysis.accounting import Accounting

MIB = 1 << 20
OTHER_THREAD = 4799


def accounted(builder: TraceBuilder, folder: Path) -> Accounting:
    """Account for the first forward of a scene."""
    trace = read_back(builder, folder)
    found = account(trace, find_forwards(trace)[0])
    assert tuple(found.categories) == CATEGORIES
    for times in (found.categories, found.stall_ns, found.exposed_ns):
        assert all(type(ns) is int for ns in times.values())
    assert sum(found.categories.values()) == found.makespan_ns
    return found


def spent(builder: TraceBuilder, folder: Path) -> dict[str, int]:
    """Return the categories that took time."""
    return {name: ns for name, ns in accounted(builder, folder).categories.items() if ns}


def one_gap(launched: int = 60, starts: int = 260) -> TraceBuilder:
    """Write a forward that computes in [100, 200) and again for 40 ns; between the two is the gap."""
    builder = TraceBuilder().range("forward 0", 0, 1000)
    return builder.kernel(100, 200, call=(50, 55)).kernel(starts, starts + 40, call=(launched, launched + 5))


def holes(found: Accounting) -> list[tuple[int, int, str]]:
    """Return the idle time piece by piece."""
    columns = (found.holes.start.tolist(), found.holes.end.tolist(), found.holes.category.tolist())
    return [(start, end, CATEGORIES[category]) for start, end, category in zip(*columns, strict=True)]


# the frame: t0, t1, gaps


def test_a_forward_without_a_gap_computes_all_the_time(tmp_path: Path) -> None:
    found = accounted(one_gap(starts=200), tmp_path)
    assert (found.t0_ns, found.t1_ns, found.makespan_ns) == (100, 240, 140)
    assert found.categories["compute"] == 140
    assert (holes(found), found.holes.lengths.tolist(), found.first_of_layer) == ([], [], {})


def test_a_forward_begins_with_a_load_that_comes_before_its_compute(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=[[(90, 95)]], computes=[[(110, 120)]])
    found = accounted(builder, tmp_path)
    assert (found.t0_ns, found.t1_ns) == (90, 120)


def test_a_forward_begins_neither_with_what_ran_before_it_nor_with_what_is_no_load(tmp_path: Path) -> None:
    builder = one_gap().kernel(10, 20, call=(-9, -5)).copy(80, 90, "d2h", 64, stream=9, call=(45, 48))
    assert accounted(builder, tmp_path).t0_ns == 100


def test_a_gap_opens_when_the_last_of_what_ran_together_ends(tmp_path: Path) -> None:
    """::

    stream 7   ██████████··██
    stream 9   ··███·········
    """
    builder = one_gap(starts=220).kernel(120, 150, stream=9, call=(56, 57))
    assert holes(accounted(builder, tmp_path)) == [(200, 220, "launch")]


def test_each_piece_of_idle_time_knows_what_computed_after_it(tmp_path: Path) -> None:
    builder = one_gap(launched=230).kernel(310, 320, call=(236, 237))
    found = accounted(builder, tmp_path)
    assert holes(found) == [(200, 230, "host"), (230, 260, "launch"), (300, 310, "launch")]
    assert found.holes.before.tolist() == [1, 1, 2]
    assert found.holes.lengths.tolist() == [30, 30, 10]


# 1, 2: the load


def test_the_wait_for_a_layers_load_is_cut_by_whether_a_load_runs(tmp_path: Path) -> None:
    """::

    load      ████··███
    compute   ············████
    """
    loads, computes = [[(100, 150), (170, 200)]], [[(220, 300)]]
    builder = layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes)
    found = accounted(builder, tmp_path)
    expected = [(100, 150, "load_copy"), (150, 170, "load_gap"), (170, 200, "load_copy"), (200, 220, "launch")]
    assert holes(found) == expected
    assert (found.stall_ns, found.exposed_ns) == ({0: 120}, {0: 100})


def test_the_load_of_another_layer_is_no_gap_in_the_load(tmp_path: Path) -> None:
    loads, computes = [[(100, 120), (160, 180)], [(120, 150)]], [[(180, 300)], [(300, 310)]]
    builder = layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes)
    assert spent(builder, tmp_path) == {"compute": 130, "load_copy": 70, "load_gap": 10}


def test_only_the_first_operation_of_a_layer_waits_for_its_load(tmp_path: Path) -> None:
    loads, computes = [[(100, 235)]], [[(200, 210), (230, 240)]]
    found = accounted(layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes), tmp_path)
    assert holes(found) == [(100, 200, "load_copy"), (210, 230, "launch")]
    assert (found.stall_ns, found.exposed_ns) == ({0: 100}, {0: 100})


def test_layers_are_told_apart_by_what_each_waited_for(tmp_path: Path) -> None:
    """Layer 1 stalls without a load of its own; layer 2 does not stall; layer 3 waits 30 ns for its load."""
    loads = [[(100, 200)], [], [], [(200, 370)]]
    computes = [[(200, 300)], [(320, 330)], [(330, 340)], [(380, 390)]]
    found = accounted(layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes), tmp_path)
    assert holes(found)[1:] == [(300, 320, "launch"), (340, 370, "load_copy"), (370, 380, "launch")]
    assert found.stall_ns == {0: 100, 1: 20, 2: 0, 3: 40}
    assert found.exposed_ns == {0: 100, 1: 0, 2: 0, 3: 30}


def test_what_broke_the_load_is_exposed_as_the_load_is(tmp_path: Path) -> None:
    loads, computes = [[(100, 110)], [(210, 220), (250, 260)]], [[(110, 200)], [(260, 280)]]
    found = accounted(layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes), tmp_path)
    assert found.categories["load_gap"] == 10 + 30
    assert found.exposed_ns == {0: 10, 1: 60}


def test_layers_stand_in_the_order_in_which_they_begin_to_compute(tmp_path: Path) -> None:
    computes = [[(300, 310)], [(200, 210)], [(240, 250)]]
    builder = layered_forward(TraceBuilder(), start=0, loads=[[(100, 150)], [], []], computes=computes)
    found = accounted(builder, tmp_path)
    assert list(found.first_of_layer.items()) == [(1, 1), (2, 2), (0, 3)]
    assert found.stall_ns == {1: 100, 2: 30, 0: 50}


def test_a_layer_that_computes_as_its_load_begins_does_not_stall(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=[[(100, 110)]], computes=[[(100, 120)]])
    found = accounted(builder, tmp_path)
    assert (found.first_of_layer, found.stall_ns, found.exposed_ns) == ({0: 1}, {0: 0}, {0: 0})


# 3, 4: the stream, the copy engine


def test_other_work_on_the_operations_own_stream_is_a_queue(tmp_path: Path) -> None:
    builder = one_gap().copy(210, 240, "d2h", 2 * MIB, stream=7, call=(56, 57))
    builder.copy(200, 208, "d2h", 2 * MIB, stream=9, call=(58, 59))
    assert holes(accounted(builder, tmp_path))[:3] == [
        (200, 210, "launch"),
        (210, 240, "stream_queue"),
        (240, 260, "launch"),
    ]


def test_each_stream_queues_for_itself(tmp_path: Path) -> None:
    """The copy on stream 7 holds up the kernel on stream 7, that on stream 9 the kernel there."""
    builder = one_gap().kernel(350, 360, stream=9, call=(66, 67))
    builder.copy(210, 240, "d2h", 2 * MIB, stream=7, call=(56, 57)).copy(302, 306, "d2h", 8, stream=7, call=(68, 69))
    builder.copy(310, 330, "d2h", 2 * MIB, stream=9, call=(58, 59)).copy(250, 255, "d2h", 8, stream=9, call=(70, 71))
    queued = [hole for hole in holes(accounted(builder, tmp_path)) if hole[2] == "stream_queue"]
    assert queued == [(210, 240, "stream_queue"), (310, 330, "stream_queue")]


def behind_a_burst(
    n_bytes: int = MIB, burst: str = "h2d", stream: int = 13, call: tuple[int, int] | None = (56, 57)
) -> TraceBuilder:
    """Write a copy of the compute stream that starts at 240, after a copy of another stream that ran from 190 to 230.

    ::

        stream 7    ██████████·······▒·██
        stream 13   ·········████
    """
    builder = one_gap().copy(190, 230, burst, 4 * MIB, stream=stream, call=(58, 59))
    return builder.copy(240, 250, "h2d", n_bytes, stream=7, call=call)


def test_a_small_copy_waits_for_the_engine_while_others_copy_the_same_way(tmp_path: Path) -> None:
    assert holes(accounted(behind_a_burst(), tmp_path)) == [
        (200, 230, "engine_queue"),
        (230, 240, "launch"),
        (240, 250, "stream_queue"),
        (250, 260, "launch"),
    ]


def test_it_waits_from_its_launch_on(tmp_path: Path) -> None:
    assert spent(behind_a_burst(call=(215, 216)), tmp_path)["engine_queue"] == 15
    # the first call of the capture
    assert spent(behind_a_burst(call=(10, 12)), tmp_path)["engine_queue"] == 30


@pytest.mark.parametrize(
    "other",
    [{"n_bytes": MIB + 1}, {"burst": "d2h"}, {"stream": 7}, {"call": None}],
    ids=["a larger copy", "another direction", "the same stream", "no launch"],
)
def test_the_engine_is_no_reason_for(other: dict[str, object], tmp_path: Path) -> None:
    assert "engine_queue" not in spent(behind_a_burst(**other), tmp_path)  # type: ignore[arg-type]


def test_copies_both_ways_wait_for_an_engine_each(tmp_path: Path) -> None:
    builder = behind_a_burst().copy(252, 255, "d2h", 64, stream=7, call=(61, 62))
    builder.copy(235, 245, "d2h", 4 * MIB, stream=17, call=(63, 64))
    found = [hole for hole in holes(accounted(builder, tmp_path)) if hole[2] == "engine_queue"]
    # 240 to 245 as well: what the stream itself runs then is given away before
    assert found == [(200, 230, "engine_queue"), (235, 240, "engine_queue")]


def test_a_copy_explains_the_gap_that_it_starts_in_alone(tmp_path: Path) -> None:
    """The burst runs on through a second gap, in which nothing small waits."""
    builder = one_gap().copy(190, 400, "h2d", 4 * MIB, stream=13, call=(56, 57))
    builder.copy(240, 250, "h2d", 64, stream=7, call=(58, 59)).kernel(340, 350, call=(66, 67))
    found = [hole for hole in holes(accounted(builder, tmp_path)) if hole[2] == "engine_queue"]
    assert found == [(200, 240, "engine_queue")]


def test_a_copy_that_starts_under_compute_explains_no_gap(tmp_path: Path) -> None:
    """It waited in the first gap as well, but what held up that gap's kernel was not this copy."""
    builder = one_gap().copy(190, 400, "h2d", 4 * MIB, stream=13, call=(56, 57))
    builder.kernel(340, 350, call=(66, 67)).copy(270, 280, "h2d", 64, stream=7, call=(58, 59))
    assert "engine_queue" not in spent(builder, tmp_path)


# 5 to 8: the host, until the launch


def test_until_the_launch_the_host_syncs_and_then_does_something_else(tmp_path: Path) -> None:
    builder = one_gap(launched=240).device_sync(call=(150, 230))
    assert holes(accounted(builder, tmp_path)) == [(200, 230, "sync"), (230, 240, "host"), (240, 260, "launch")]


@pytest.mark.parametrize("name", ["cudaDeviceSynchronize_v3020", "cudaFree_v3020", "cudaMemcpyAsync_v3020"])
def test_what_the_host_does_after_the_launch_is_not_why_it_was_late(name: str, tmp_path: Path) -> None:
    builder = one_gap(launched=240).api(name, 246, 256)
    assert spent(builder, tmp_path) == {"compute": 140, "host": 40, "launch": 20}


def test_what_another_thread_waits_for_is_not_why_this_one_is_late(tmp_path: Path) -> None:
    builder = one_gap(launched=240).device_sync(call=(150, 230), thread=OTHER_THREAD)
    builder.api("cudaMalloc_v3020", 200, 210, thread=OTHER_THREAD)
    assert spent(builder, tmp_path) == {"compute": 140, "host": 40, "launch": 20}


@pytest.mark.parametrize("name", ["cudaMalloc_v3020", "cudaFree_v3020", "cudaHostRegister_v4000", "cudaMemcpy_v3020"])
def test_calls_that_block_without_saying_so_are_implicit(name: str, tmp_path: Path) -> None:
    builder = one_gap(launched=240).api(name, 205, 230)
    assert spent(builder, tmp_path) == {"compute": 140, "implicit_sync": 25, "host": 15, "launch": 20}


def test_an_asynchronous_copy_of_pageable_memory_blocks(tmp_path: Path) -> None:
    builder = one_gap(launched=240).copy(212, 218, "h2d", 64, memory="pageable", call=(205, 230))
    assert spent(builder, tmp_path) == {"compute": 140, "implicit_sync": 25, "host": 15, "launch": 20}


def test_an_asynchronous_copy_of_pinned_memory_is_submitted(tmp_path: Path) -> None:
    builder = one_gap(launched=240).copy(290, 299, "h2d", 64, call=(205, 230))
    assert spent(builder, tmp_path) == {"compute": 140, "submit": 25, "host": 15, "launch": 20}


def test_the_whole_range_of_a_load_is_submission_but_for_the_waits_in_it(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).range("compute layer 0", 40, 70)
    builder.kernel(100, 200, call=(50, 55)).range("load layer 1", 205, 235).device_sync(call=(210, 220))
    builder.copy(500, 600, "h2d", 64, call=(230, 232)).range("compute layer 0", 238, 250)
    builder.kernel(260, 300, call=(240, 245))
    assert spent(builder, tmp_path) == {"compute": 140, "sync": 10, "submit": 20, "host": 10, "launch": 20}


def test_a_load_that_ends_after_its_compute_takes_all_of_the_gap(tmp_path: Path) -> None:
    """Whatever the host did meanwhile, the layer could not have computed before its load was done."""
    builder = TraceBuilder().range("forward 0", 0, 1000).range("compute layer 0", 40, 70)
    builder.kernel(100, 200, call=(50, 55)).range("load layer 1", 205, 235).device_sync(call=(210, 220))
    builder.copy(250, 600, "h2d", 64, call=(230, 232)).range("compute layer 1", 238, 250)
    builder.kernel(260, 300, call=(240, 245))
    assert holes(accounted(builder, tmp_path)) == [(200, 250, "load_gap"), (250, 260, "load_copy")]


def test_launches_of_two_threads_are_each_explained_by_their_own(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).range("compute layer 0", 40, 70)
    builder.kernel(100, 200, call=(50, 55)).range("compute layer 1", 210, 250, thread=OTHER_THREAD)
    builder.device_sync(call=(150, 230)).device_sync(call=(200, 208), thread=OTHER_THREAD)
    builder.kernel(260, 300, call=(240, 245), thread=OTHER_THREAD)
    builder.range("compute layer 0", 305, 330).kernel(330, 340, call=(320, 325))
    assert holes(accounted(builder, tmp_path)) == [
        (200, 208, "sync"),
        (208, 240, "host"),
        (240, 260, "launch"),
        (300, 320, "host"),
        (320, 330, "launch"),
    ]


# 9, 10: after the launch


def test_other_kernels_on_the_device_hold_up_what_was_launched(tmp_path: Path) -> None:
    builder = one_gap(launched=210).kernel(190, 240, name="transfer_kv_all_layer", stream=13, call=(58, 59))
    assert holes(accounted(builder, tmp_path)) == [(200, 210, "host"), (210, 240, "sm_busy"), (240, 260, "launch")]


def test_kernels_on_another_device_hold_up_nothing(tmp_path: Path) -> None:
    builder = one_gap().kernel(190, 240, device=1, stream=13, call=(58, 59), thread=OTHER_THREAD)
    assert spent(builder, tmp_path) == {"compute": 140, "launch": 60}


def test_what_has_no_launch_is_not_the_hosts_to_explain(tmp_path: Path) -> None:
    trace = read_back(one_gap(launched=240).device_sync(call=(150, 230)), tmp_path)
    (forward,) = find_forwards(trace)
    for launch in ([0, -1], [-1, -1]):
        unknown = replace(trace, operations=replace(trace.operations, launch=np.array(launch)))
        found = account(unknown, forward).categories
        assert {name: ns for name, ns in found.items() if ns} == {"compute": 140, "launch": 60}


def test_a_launch_that_began_after_its_gap_explains_no_more_than_the_gap(tmp_path: Path) -> None:
    """Clocks of host and device may disagree by more than a launch takes."""
    assert spent(one_gap(launched=280), tmp_path) == {"compute": 140, "host": 60}
