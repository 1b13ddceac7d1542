"""Calls that block the host: which they are, what they are called, and where they stand."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from export_writer import PROCESS, global_pid
from plain_trace import call_of, read_back
from trace_builder import TraceBuilder

from traceview.analysis.accounting import account
from traceview.analysis.forwards import find_forwards
from traceview.analysis.syncs import find_blocking_calls, list_syncs
from traceview.errors import UsageError
from traceview.report import Sync

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from traceview.analysis.syncs import BlockingCalls
    from traceview.model import Trace

OTHER_THREAD = 4799


def found_in(builder: TraceBuilder, folder: Path, allow: str | None = None) -> tuple[Trace, BlockingCalls]:
    trace = read_back(builder, folder)
    forwards = find_forwards(trace)
    return trace, find_blocking_calls(trace, forwards, [account(trace, one) for one in forwards], allow)


def syncs(builder: TraceBuilder, folder: Path, allow: str | None = None) -> tuple[Sync, ...]:
    return list_syncs(*found_in(builder, folder, allow))


def only(builder: TraceBuilder, folder: Path, allow: str | None = None) -> Sync:
    (sync,) = syncs(builder, folder, allow)
    return sync


def forward(number: int = 0, at: int = 0) -> TraceBuilder:
    """Write a forward of 1000 ns that computes in [100, 200) and, launched at 270, in [300, 400)."""
    return add_forward(TraceBuilder(), number, at)


def add_forward(builder: TraceBuilder, number: int, at: int) -> TraceBuilder:
    builder.range(f"forward {number}", at, at + 1000)
    builder.kernel(at + 100, at + 200, call=(at + 50, at + 60))
    return builder.kernel(at + 300, at + 400, call=(at + 270, at + 280))


ACCIDENTAL = Sync(
    api="cudaDeviceSynchronize",
    kind="explicit",
    forward=0,
    count=1,
    accidental=True,
    boundary=False,
    blocked_ns=80,
    cost_ns=100,
    range_name="forward 0",
    where=None,
    direction=None,
)
"""A call in [150, 230) of the forward: with what it forces it costs all of the gap [200, 300)."""


# where a call stands


def test_a_call_before_the_last_compute_launch_is_accidental(tmp_path: Path) -> None:
    assert only(forward().device_sync(call=(150, 230)), tmp_path) == ACCIDENTAL


def test_a_trace_without_blocking_calls_lists_none(tmp_path: Path) -> None:
    assert syncs(forward(), tmp_path) == ()


def test_a_call_after_the_last_compute_launch_is_the_forwards_boundary(tmp_path: Path) -> None:
    sync = only(forward().device_sync(call=(290, 410)), tmp_path)
    assert (sync.forward, sync.accidental, sync.boundary) == (0, False, True)
    assert (sync.blocked_ns, sync.cost_ns) == (120, 0)


def test_a_call_that_begins_with_the_last_compute_launch_is_not_before_it(tmp_path: Path) -> None:
    builder = forward().range("load layer 0", 10, 30, thread=OTHER_THREAD)
    builder.copy(40, 90, "h2d", 64, call=(15, 20), thread=OTHER_THREAD)
    builder.device_sync(call=(270, 300), thread=OTHER_THREAD).device_sync(call=(269, 270))
    _, found = found_in(builder, tmp_path)
    assert list(zip(found.start.tolist(), found.boundary.tolist(), strict=True)) == [(269, False), (270, True)]


def test_later_submissions_that_compute_nothing_do_not_make_it_accidental(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(290, 410)).copy(450, 460, "d2h", 4096, call=(420, 430))
    assert only(builder, tmp_path).boundary


@pytest.mark.parametrize("start", [1000, 1500])
def test_outside_any_forward_nobody_says_whether_a_call_was_meant(start: int, tmp_path: Path) -> None:
    sync = only(forward().device_sync(call=(start, start + 10)), tmp_path)
    assert (sync.forward, sync.accidental, sync.cost_ns, sync.range_name) == (None, None, None, None)
    assert (sync.count, sync.blocked_ns, sync.boundary) == (1, 10, False)


def test_a_forward_holds_the_call_that_begins_with_it_and_not_the_one_before(tmp_path: Path) -> None:
    builder = forward(at=100).device_sync(call=(99, 100)).device_sync(call=(100, 101)).device_sync(call=(103, 104))
    _, found = found_in(builder, tmp_path)
    assert found.forward.tolist() == [-1, 0, 0]


def test_a_thread_that_launches_nothing_of_a_forward_is_outside_of_it(tmp_path: Path) -> None:
    sync = only(forward().device_sync(call=(150, 230), thread=OTHER_THREAD), tmp_path)
    assert (sync.forward, sync.accidental, sync.range_name) == (None, None, None)


def test_a_thread_that_launches_something_else_is_outside_as_well(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(150, 230), thread=OTHER_THREAD)
    builder.kernel(500, 510, stream=9, call=(140, 145), thread=OTHER_THREAD)
    assert only(builder, tmp_path).forward is None


def test_a_forward_that_nobody_is_known_to_have_launched_holds_no_call(tmp_path: Path) -> None:
    builder = add_forward(forward(), 1, 2000).device_sync(call=(150, 230)).device_sync(call=(2150, 2230))
    trace = read_back(builder, tmp_path)
    forwards = find_forwards(trace)
    launch = np.where(trace.operations.start < 1000, -1, trace.operations.launch)
    trace = replace(trace, operations=replace(trace.operations, launch=launch))
    found = find_blocking_calls(trace, forwards, [account(trace, one) for one in forwards])
    assert (found.forward.tolist(), found.cost.tolist()) == ([-1, 1], [0, 100])


def test_each_forward_needs_its_accounting(tmp_path: Path) -> None:
    trace = read_back(forward(), tmp_path)
    with pytest.raises(ValueError, match="shorter"):
        find_blocking_calls(trace, find_forwards(trace), [])


def test_many_calls_inside_and_outside_of_a_forward_cost_what_each_forced(tmp_path: Path) -> None:
    """Forty times the host waits 10 ns of an idle device and launches 10 ns of work 5 ns later; so does a stranger."""
    builder = TraceBuilder().range("forward 0", 0, 3000).kernel(80, 100, call=(50, 60))
    for at in range(100, 1300, 30):
        builder.device_sync(call=(at, at + 10)).device_sync(call=(at + 1, at + 9), thread=OTHER_THREAD)
        builder.kernel(at + 20, at + 30, call=(at + 15, at + 16))
    _, found = found_in(builder, tmp_path)
    assert found.forward.tolist() == [0, -1] * 40
    assert found.cost.tolist() == [20, 0] * 40


def test_columns_hold_flags_and_integers(tmp_path: Path) -> None:
    for allow in (None, "forward"):
        _, found = found_in(forward().device_sync(call=(150, 230)), tmp_path, allow)
        flags = {name for name, column in vars(found).items() if column.dtype == bool}
        assert flags == {"readback", "explicit", "boundary", "allowed"}
        assert {column.dtype.kind for name, column in vars(found).items() if name not in flags} == {"i"}


def test_each_call_lies_in_its_own_forward(tmp_path: Path) -> None:
    builder = add_forward(forward(), 1, 2000).device_sync(call=(150, 230)).device_sync(call=(2150, 2220))
    _, found = found_in(builder, tmp_path)
    assert found.forward.tolist() == [0, 1]
    assert found.cost.tolist() == [100, 100]
    assert [sync.forward for sync in syncs(builder, tmp_path)] == [0, 1]


def test_a_call_costs_idle_time_on_every_device_that_its_forward_computes_on(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(150, 230))
    builder.kernel(100, 210, device=1, context=2, call=(61, 63)).kernel(300, 310, device=1, context=2, call=(281, 283))
    assert only(builder, tmp_path).cost_ns == 100 + 90


def test_the_last_compute_launch_may_be_for_another_device(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(290, 300))
    builder.kernel(100, 210, device=1, context=2, call=(61, 63)).kernel(400, 410, device=1, context=2, call=(310, 312))
    assert only(builder, tmp_path).accidental


# what an allow-listed range encloses


def test_a_call_in_an_allowed_range_was_meant(tmp_path: Path) -> None:
    builder = forward().range("sampling 3", 140, 235).device_sync(call=(150, 230))
    sync = only(builder, tmp_path, allow="^samp")
    assert (sync.accidental, sync.boundary, sync.range_name, sync.cost_ns) == (False, False, "sampling 3", 100)


def test_an_allowed_range_need_not_be_the_innermost(tmp_path: Path) -> None:
    builder = forward().range("sampling", 140, 235).range("inner", 145, 233).device_sync(call=(150, 230))
    sync = only(builder, tmp_path, allow="sampling")
    assert (sync.accidental, sync.range_name) == (False, "inner")


@pytest.mark.parametrize("allow", [None, "warmup"])
def test_a_range_that_is_not_allowed_excuses_nothing(allow: str | None, tmp_path: Path) -> None:
    builder = forward().range("sampling", 140, 235).device_sync(call=(150, 230))
    assert only(builder, tmp_path, allow).accidental


def test_an_allowed_range_of_another_thread_excuses_nothing(tmp_path: Path) -> None:
    builder = forward().range("sampling", 140, 235, thread=OTHER_THREAD).device_sync(call=(150, 230))
    assert only(builder, tmp_path, allow="sampling").accidental


def test_a_whole_forward_may_be_allowed(tmp_path: Path) -> None:
    assert only(forward().device_sync(call=(150, 230)), tmp_path, allow="forward").accidental is False


def test_an_expression_that_is_none_is_refused_by_the_name_of_its_option(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--allow-sync is no regular expression"):
        only(forward().device_sync(call=(150, 230)), tmp_path, allow="(")


def test_nothing_is_allowed_in_a_trace_without_ranges(tmp_path: Path) -> None:
    sync = only(TraceBuilder().device_sync(call=(150, 230)), tmp_path, allow="sampling")
    assert (sync.api, sync.accidental, sync.forward) == ("cudaDeviceSynchronize", None, None)


# what kind it is


def test_an_allocation_is_implicit(tmp_path: Path) -> None:
    sync = only(forward().api("cudaMalloc_v3020", 150, 230), tmp_path)
    assert (sync.api, sync.kind, sync.direction, sync.cost_ns) == ("cudaMalloc", "implicit", None, 100)


def test_a_copy_of_pageable_memory_is_implicit_and_says_which_way_it_went(tmp_path: Path) -> None:
    builder = forward().copy(160, 170, "h2d", 4096, memory="pageable", call=(150, 230))
    sync = only(builder, tmp_path)
    assert (sync.api, sync.kind, sync.direction) == ("cudaMemcpyAsync", "implicit", "h2d")


def test_a_synchronous_copy_is_implicit_however_small(tmp_path: Path) -> None:
    builder = forward().copy(160, 170, "d2h", 4, stream=7, api="cudaMemcpy_v3020", call=(150, 200))
    builder.stream_sync(stream=7, call=(205, 230))
    found = {sync.kind: (sync.direction, sync.blocked_ns) for sync in syncs(builder, tmp_path)}
    assert found == {"implicit": ("d2h", 50), "explicit": (None, 25)}


def test_a_blocking_call_without_a_known_name_is_called_unknown(tmp_path: Path) -> None:
    builder = forward().copy(160, 170, "h2d", 4096, memory="pageable", correlation=77)
    thread = global_pid(PROCESS) | PROCESS
    columns = {"start": 150, "end": 230, "correlationId": 77, "nameId": -1}
    builder.row("CUPTI_ACTIVITY_KIND_RUNTIME", globalTid=thread, **columns)
    builder.copy(152, 155, "d2h", 8, stream=7, call=(145, 149))
    sync = only(builder, tmp_path)
    assert (sync.api, sync.kind) == ("unknown", "implicit")


def test_a_copy_that_nobody_is_known_to_have_launched_is_no_calls(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(160, 170, "h2d", 4096).device_sync(call=(150, 230))
    assert only(builder, tmp_path).direction is None


def test_a_range_may_be_called_as_the_call_that_it_encloses(tmp_path: Path) -> None:
    builder = TraceBuilder().device_sync(call=(150, 230)).range("cudaDeviceSynchronize", 140, 240)
    sync = only(builder, tmp_path)
    assert (sync.api, sync.range_name) == ("cudaDeviceSynchronize", "cudaDeviceSynchronize")


def test_calls_that_do_not_block_are_not_listed(tmp_path: Path) -> None:
    builder = forward().api("cudaEventQuery_v3020", 100, 110).api("cudaStreamWaitEvent_v3020", 110, 120)
    assert syncs(builder.copy(160, 170, "h2d", 4096, call=(150, 160)), tmp_path) == ()


# scalars read back


def read_back_of(n_bytes: int = 64, direction: str = "d2h", stream: int = 7, **copy: Any) -> TraceBuilder:
    """Write a small copy at 210, whose stream 7 is waited for from 218 to 240."""
    builder = forward().copy(212, 216, direction, n_bytes, stream=stream, call=(210, 215), **copy)
    return builder.stream_sync(stream=7, call=(218, 240))


@pytest.mark.parametrize(("memory", "cost"), [("pinned", 84), ("pageable", 86)])
def test_a_small_copy_and_the_wait_for_it_are_one_call(memory: str, cost: int, tmp_path: Path) -> None:
    """Of the gap [210, 300) the copy queues from 212 to 216; to submit a pinned one takes 2 ns before that."""
    trace, found = found_in(read_back_of(memory=memory), tmp_path)
    assert (found.start.tolist(), found.blocked.tolist(), found.readback.tolist()) == ([210], [5 + 22], [True])
    assert call_of(trace, int(found.call[0])) == ("cudaStreamSynchronize", 218)
    (sync,) = list_syncs(trace, found)
    assert (sync.api, sync.kind, sync.direction) == ("cudaStreamSynchronize", "scalar_readback", "d2h")
    assert (sync.count, sync.blocked_ns, sync.cost_ns) == (1, 27, cost)


@pytest.mark.parametrize(
    "other",
    [{"n_bytes": 65}, {"direction": "h2d"}, {"stream": 9}],
    ids=["more than 64 bytes", "host to device", "another stream"],
)
def test_no_scalar_is_read_back_by_a_copy_of(other: dict[str, Any], tmp_path: Path) -> None:
    _, found = found_in(read_back_of(**other), tmp_path)
    assert (found.start.tolist(), found.readback.tolist(), found.explicit.tolist()) == ([218], [False], [True])


def test_a_wait_whose_stream_the_capture_does_not_tell_may_be_for_the_copy(tmp_path: Path) -> None:
    builder = forward().copy(212, 216, "d2h", 64, stream=7, call=(210, 215))
    _, found = found_in(builder.api("cudaStreamSynchronize_v3020", 218, 240), tmp_path)
    assert found.readback.tolist() == [True]


def test_the_stream_of_a_wait_without_its_call_is_nobodys(tmp_path: Path) -> None:
    """Whoever waited for stream 9 was cut off; the last call waits for a stream that the capture does not tell."""
    builder = forward().stream_sync(stream=9, call=(500, 510)).copy(412, 416, "d2h", 64, stream=7, call=(410, 415))
    trace = read_back(builder.api("cudaStreamSynchronize_v3020", 418, 440), tmp_path)
    trace = replace(
        trace, calls=trace.calls.take(slice(-1)), stream_syncs=replace(trace.stream_syncs, call=np.array([-1]))
    )
    found = find_blocking_calls(trace, (), ())
    assert (found.start.tolist(), found.readback.tolist()) == ([410], [True])


def test_the_very_first_calls_of_a_capture_may_read_a_scalar_back(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(212, 216, "d2h", 64, stream=7, memory="pageable", call=(210, 215))
    trace, found = found_in(builder.stream_sync(stream=7, call=(218, 240)), tmp_path)
    assert (found.start.tolist(), found.blocked.tolist(), found.readback.tolist()) == ([210], [27], [True])
    assert list_syncs(trace, found)[0].direction == "d2h"


def test_a_larger_copy_beside_a_small_one_reads_no_scalar_back(tmp_path: Path) -> None:
    builder = read_back_of().copy(312, 316, "d2h", 65, stream=13, call=(310, 315))
    builder.api("cudaStreamSynchronize_v3020", 318, 340)
    _, found = found_in(builder, tmp_path)
    assert (found.start.tolist(), found.readback.tolist()) == ([210, 318], [True, False])


def test_a_wait_for_the_whole_device_reads_no_scalar_back(tmp_path: Path) -> None:
    builder = forward().copy(212, 216, "d2h", 64, stream=7, call=(210, 215)).device_sync(call=(218, 240))
    assert only(builder, tmp_path).kind == "explicit"


def test_a_wait_after_something_else_was_submitted_reads_no_scalar_back(tmp_path: Path) -> None:
    builder = read_back_of().kernel(216, 217, call=(216, 217))
    assert only(builder, tmp_path).kind == "explicit"


def test_a_query_between_copy_and_wait_changes_nothing(tmp_path: Path) -> None:
    builder = read_back_of().api("cudaEventQuery_v3020", 216, 217)
    assert only(builder, tmp_path).kind == "scalar_readback"


def test_a_wait_of_another_thread_reads_no_scalar_back(tmp_path: Path) -> None:
    builder = forward().copy(212, 216, "d2h", 64, stream=7, call=(210, 215))
    builder.stream_sync(stream=7, call=(218, 240), thread=OTHER_THREAD)
    assert only(builder, tmp_path).kind == "explicit"


def test_each_of_two_threads_reads_its_own_scalar_back(tmp_path: Path) -> None:
    builder = read_back_of().copy(213, 217, "d2h", 8, stream=9, call=(211, 214), thread=OTHER_THREAD)
    builder.stream_sync(stream=9, call=(219, 239), thread=OTHER_THREAD)
    _, found = found_in(builder, tmp_path)
    assert (found.start.tolist(), found.readback.tolist()) == ([210, 211], [True, True])


def test_calls_stand_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    """A read-back began with its copy, before a call of another thread that began before its wait."""
    builder = read_back_of().device_sync(call=(216, 217), thread=OTHER_THREAD).device_sync(call=(205, 208))
    _, found = found_in(builder, tmp_path)
    assert (found.start.tolist(), found.readback.tolist()) == ([205, 210, 216], [False, True, False])


# what came before


def test_a_call_knows_what_its_thread_submitted_or_waited_for_before(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(150, 230)).api("cudaEventQuery_v3020", 240, 241)
    builder.device_sync(call=(250, 260)).device_sync(call=(245, 246), thread=OTHER_THREAD)
    trace, found = found_in(builder, tmp_path)
    assert int(found.previous[1]) == -1
    before = [call_of(trace, int(call)) for call in found.previous]
    assert before == [("cudaLaunchKernel", 50), None, ("cudaDeviceSynchronize", 150)]


# how calls are listed


def test_calls_that_differ_in_their_times_alone_are_one_row(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(150, 230)).device_sync(call=(240, 250)).device_sync(call=(255, 260))
    sync = only(builder, tmp_path)
    assert (sync.count, sync.blocked_ns, sync.cost_ns) == (3, 80 + 10 + 5, 100)


def test_calls_in_two_ranges_are_two_rows(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(150, 230)).range("sampling", 235, 255).device_sync(call=(240, 250))
    rows = [(sync.range_name, sync.count, sync.cost_ns) for sync in syncs(builder, tmp_path)]
    assert rows == [("sampling", 1, 60), ("forward 0", 1, 40)]


def test_of_equal_cost_the_longer_wait_comes_first_then_the_name(tmp_path: Path) -> None:
    builder = forward().api("cudaFree_v3020", 410, 420).api("cudaMalloc_v3020", 430, 440)
    builder.device_sync(call=(450, 461)).api("cudaEventSynchronize_v3020", 150, 151)
    assert [sync.api for sync in syncs(builder, tmp_path)] == [
        "cudaEventSynchronize",
        "cudaDeviceSynchronize",
        "cudaFree",
        "cudaMalloc",
    ]


def test_of_rows_that_weigh_the_same_the_first_call_comes_first(tmp_path: Path) -> None:
    builder = forward().range("b", 405, 425).device_sync(call=(410, 420)).range("a", 428, 445)
    builder.device_sync(call=(430, 440))
    assert [sync.range_name for sync in syncs(builder, tmp_path)] == ["b", "a"]


def test_what_cost_a_nanosecond_comes_before_what_cost_none(tmp_path: Path) -> None:
    """The call at 299 costs the last nanosecond of the gap [200, 300) in 2 ns, that at 450 none in 9."""
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    builder.device_sync(call=(299, 301)).kernel(300, 400, call=(302, 303))
    builder.kernel(400, 500, call=(304, 305)).api("cudaFree_v3020", 450, 459)
    assert [(sync.cost_ns, sync.blocked_ns) for sync in syncs(builder, tmp_path)] == [(1, 2), (0, 9)]


def test_of_rows_that_weigh_the_same_the_one_with_more_calls_comes_first(tmp_path: Path) -> None:
    builder = forward().range("a", 405, 425).device_sync(call=(410, 420)).range("b", 428, 445)
    builder.device_sync(call=(430, 435)).device_sync(call=(436, 441))
    assert [(sync.range_name, sync.count) for sync in syncs(builder, tmp_path)] == [("b", 2), ("a", 1)]


def test_each_of_two_rows_counts_all_of_its_calls(tmp_path: Path) -> None:
    builder = forward()
    for at in (410, 430, 450):
        builder.device_sync(call=(at, at + 4)).api("cudaFree_v3020", at + 10, at + 13)
    found = {sync.api: (sync.count, sync.blocked_ns) for sync in syncs(builder, tmp_path)}
    assert found == {"cudaDeviceSynchronize": (3, 12), "cudaFree": (3, 9)}


def test_calls_outside_forwards_come_after_those_that_cost_something(tmp_path: Path) -> None:
    builder = forward().device_sync(call=(1500, 1900)).device_sync(call=(150, 230))
    assert [sync.forward for sync in syncs(builder, tmp_path)] == [0, None]


def test_calls_made_in_different_places_are_different_rows(tmp_path: Path) -> None:
    builder = forward().stack(5, [("serve", "engine.so")]).stack(6, [("sample", "engine.so"), ("serve", "engine.so")])
    builder.api("cudaFree_v3020", 150, 230, callchainId=5).api("cudaFree_v3020", 240, 250, callchainId=6)
    builder.api("cudaFree_v3020", 255, 256)
    rows = [(sync.where, sync.blocked_ns) for sync in syncs(builder, tmp_path)]
    assert rows == [(None, 1), (("serve",), 80), (("sample", "serve"), 10)]
