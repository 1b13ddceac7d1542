"""API calls: one row per call, whatever the capture recorded twice, under the name that the manuals use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import calls, operations, read_back
from trace_builder import TraceBuilder

from traceview.model import CallKind
from traceview.nsys.schema import call_kind, documented_name

if TYPE_CHECKING:
    from pathlib import Path

    from plain_trace import Row


def spans(found: list[Row]) -> list[tuple[str, int, int, str | None]]:
    """Return name, times and the innermost function of each call."""
    return [(row["name"], row["start"], row["end"], row["stack"] and row["stack"][0]) for row in found]


def with_stacks() -> TraceBuilder:
    return TraceBuilder().stack(3, [("one", "a.so"), ("main", "a.so")]).stack(4, [("two", "a.so")])


def test_a_call_with_a_backtrace_row_is_one_call_with_the_plain_rows_times(tmp_path: Path) -> None:
    builder = with_stacks().api("cudaMalloc", 9, 31, correlation=5, eventClass=67, callchainId=3)
    builder.api("cudaMalloc_v3020", 10, 30, correlation=5)
    assert spans(calls(read_back(builder, tmp_path))) == [("cudaMalloc", 10, 30, "one")]


def test_the_backtrace_row_may_be_of_the_same_instant_or_come_later(tmp_path: Path) -> None:
    builder = with_stacks().api("cudaMalloc_v3020", 10, 30, correlation=5)
    builder.api("cudaMalloc", 10, 30, correlation=5, eventClass=67, callchainId=3)
    builder.api("cudaFree_v3020", 40, 50, correlation=6)
    builder.api("cudaFree", 41, 49, correlation=6, eventClass=67, callchainId=4)
    assert spans(calls(read_back(builder, tmp_path))) == [("cudaMalloc", 10, 30, "one"), ("cudaFree", 40, 50, "two")]


def test_work_is_launched_by_the_one_call_that_is_left(tmp_path: Path) -> None:
    builder = TraceBuilder().api("cudaLaunchKernel", 9, 31, correlation=5, eventClass=67, callchainId=3)
    builder.kernel(40, 50, call=(10, 30), correlation=5)
    assert operations(read_back(builder, tmp_path))[0]["launch"] == ("cudaLaunchKernel", 10)


def test_rows_of_two_threads_or_processes_are_two_calls(tmp_path: Path) -> None:
    builder = TraceBuilder().api("cudaMalloc", 10, 30, correlation=5)
    builder.api("cudaMalloc", 11, 31, correlation=5, eventClass=67, callchainId=1, thread=9)
    builder.api("cudaMalloc", 12, 32, correlation=5, eventClass=67, callchainId=2, process=9)
    assert [row["start"] for row in calls(read_back(builder, tmp_path))] == [10, 11, 12]


def test_a_backtrace_row_without_a_plain_one_is_the_call(tmp_path: Path) -> None:
    builder = with_stacks().api("cudaMalloc", 9, 31, correlation=5, eventClass=67, callchainId=3)
    builder.api("cudaFree", 40, 41, correlation=None, eventClass=67, callchainId=4)
    assert spans(calls(read_back(builder, tmp_path))) == [("cudaMalloc", 9, 31, "one"), ("cudaFree", 40, 41, "two")]


def test_two_plain_rows_of_one_correlation_id_are_two_calls(tmp_path: Path) -> None:
    """cuCtxSynchronize takes over the id of the cudaDeviceReset around it; what they launch belongs to the outer."""
    builder = TraceBuilder().api("cudaDeviceReset_v3020", 10, 50, correlation=5)
    builder.api("cuCtxSynchronize", 20, 40, correlation=5, eventClass=1).memset(60, 61, correlation=5)
    trace = read_back(builder, tmp_path)
    assert [row["name"] for row in calls(trace)] == ["cudaDeviceReset", "cuCtxSynchronize"]
    assert operations(trace)[0]["launch"] == ("cudaDeviceReset", 10)


def test_two_plain_rows_take_their_own_backtraces(tmp_path: Path) -> None:
    builder = with_stacks()
    for at, stack in ((10, 3), (20, 4)):
        builder.api("cudaFree_v3020", at, at + 5, correlation=5)
        builder.api("cudaFree", at - 1, at + 6, correlation=5, eventClass=67, callchainId=stack)
    assert spans(calls(read_back(builder, tmp_path))) == [("cudaFree", 10, 15, "one"), ("cudaFree", 20, 25, "two")]


def test_an_earlier_call_keeps_its_work_when_a_later_one_reuses_its_id(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(20, 21, call=(10, 11), correlation=5).api("cudaFree", 30, 31, correlation=5)
    assert operations(read_back(builder, tmp_path))[0]["launch"] == ("cudaLaunchKernel", 10)


def test_calls_stand_in_start_order(tmp_path: Path) -> None:
    builder = TraceBuilder().api("c", 30, 31).api("a", 10, 90).api("b", 20, 21)
    assert [row["name"] for row in calls(read_back(builder, tmp_path))] == ["a", "b", "c"]


def test_threads_are_told_apart_by_process_and_number(tmp_path: Path) -> None:
    builder = TraceBuilder().api("a", 1, 2, process=7, thread=9).api("b", 3, 4, process=8, thread=9)
    assert [row["thread"] for row in calls(read_back(builder, tmp_path))] == [(7, 9), (8, 9)]


def test_calls_without_any_work_are_a_trace(tmp_path: Path) -> None:
    """Unsupported drivers and WSL give exports with API rows and no GPU rows."""
    trace = read_back(TraceBuilder().device_sync(call=(5, 9)), tmp_path)
    assert len(trace.operations) == 0
    assert [row["kind"] for row in calls(trace)] == ["SYNC"]


@pytest.mark.parametrize(
    ("stored", "documented"),
    [
        ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync"),
        ("cudaLaunchKernel_v7000_ptsz", "cudaLaunchKernel"),
        ("cudaStreamSynchronize_ptsz", "cudaStreamSynchronize"),
        ("cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync"),
        ("cuMemcpyHtoDAsync_v2_ptsz", "cuMemcpyHtoDAsync"),
        ("cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC"),
        ("cudaMalloc3D_v3020", "cudaMalloc3D"),
        ("cuStreamSynchronize", "cuStreamSynchronize"),
        ("my_v1_function", "my_v1_function"),
    ],
)
def test_names_lose_their_abi_suffix(stored: str, documented: str) -> None:
    assert documented_name(stored) == documented


KINDS = {
    CallKind.SYNC: "cudaDeviceSynchronize cudaStreamSynchronize cudaEventSynchronize cudaThreadSynchronize"
    " cuCtxSynchronize cuStreamSynchronize cuEventSynchronize",
    CallKind.BLOCKING: "cudaMalloc cudaMallocHost cudaMallocManaged cudaMallocPitch cudaMalloc3D cudaMallocArray"
    " cudaFree cudaFreeHost cudaFreeArray cudaHostAlloc cudaHostRegister cudaHostUnregister cudaMemcpy cudaMemcpy2D"
    " cudaMemcpyToSymbol cudaMemcpyFromSymbol cudaMemset cudaMemset2D cuMemAlloc cuMemAllocHost cuMemAllocManaged"
    " cuMemAllocPitch cuMemFree cuMemFreeHost cuMemHostAlloc cuMemHostRegister cuMemHostUnregister cuMemcpyHtoD"
    " cuMemcpyDtoH cuMemcpy2D cuMemcpy2DUnaligned cuMemsetD8 cuMemsetD32",
    CallKind.ASYNC_COPY: "cudaMemcpyAsync cudaMemcpy2DAsync cudaMemcpyPeerAsync cudaMemcpyToSymbolAsync"
    " cudaMemcpyBatchAsync cuMemcpyHtoDAsync cuMemcpyDtoHAsync cuMemcpyAsync cuMemcpyPeerAsync cuMemcpyBatchAsync",
    CallKind.LAUNCH: "cudaLaunchKernel cudaLaunchKernelExC cudaLaunchCooperativeKernel cudaGraphLaunch cuLaunchKernel"
    " cuLaunchKernelEx cuLaunchCooperativeKernel cuGraphLaunch",
    CallKind.OTHER: "cudaMallocAsync cudaFreeAsync cudaMallocFromPoolAsync cuMemAllocAsync cuMemFreeAsync"
    " cudaMemsetAsync cuMemsetD8Async cudaStreamWaitEvent cudaEventQuery cudaStreamQuery cudaEventRecord"
    " cuStreamWaitEvent cuEventQuery cudaGetDevice cudaLaunchHostFunc cuModuleLoadData cudaMemGetInfo cuMemGetInfo"
    " cudaMemPrefetchAsync cudaHostGetDevicePointer cudaFuncGetAttributes cudaMemAdvise",
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in KINDS.items() for name in names.split()])
def test_what_a_call_does_to_its_thread_shows_in_its_name(kind: CallKind, name: str) -> None:
    assert call_kind(name) == kind
