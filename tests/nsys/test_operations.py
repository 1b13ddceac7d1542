"""Operations: what each row of the device's tables becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import operations, read_back, rows
from trace_builder import TraceBuilder

from traceview.model import Direction

if TYPE_CHECKING:
    from pathlib import Path


def test_kernels_copies_memsets_and_graphs_are_one_table_in_start_order(tmp_path: Path) -> None:
    builder = TraceBuilder().memset(5, 6).kernel(30, 40).copy(10, 20).graph(1, 50)
    found = operations(read_back(builder, tmp_path))
    assert [(row["kind"], row["start"], row["end"]) for row in found] == [
        ("GRAPH", 1, 50),
        ("MEMSET", 5, 6),
        ("COPY", 10, 20),
        ("KERNEL", 30, 40),
    ]


def test_rows_of_equal_start_stand_by_end_whatever_their_order_in_the_file(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(5, 9).kernel(5, 7).copy(5, 8).kernel(2, 3)
    assert [row["end"] for row in operations(read_back(builder, tmp_path))] == [3, 7, 8, 9]


def test_a_launch_is_found_by_process_and_correlation_id(tmp_path: Path) -> None:
    """Two ranks number their calls from 1, so the id alone names the wrong call."""
    builder = TraceBuilder()
    for process, at in ((100, 10), (200, 20)):
        builder.kernel(at + 5, at + 6, process=process, call=(at, at + 1), correlation=1)
    assert [row["launch"] for row in operations(read_back(builder, tmp_path))] == [
        ("cudaLaunchKernel", 10),
        ("cudaLaunchKernel", 20),
    ]


def test_work_without_a_launch_is_kept(tmp_path: Path) -> None:
    builder = (
        TraceBuilder().kernel(0, 1).kernel(2, 3, correlation=77).copy(4, 5, correlation=0).kernel(6, 7, call=(1, 2))
    )
    launches = [row["launch"] for row in operations(read_back(builder, tmp_path))]
    assert launches == [None, None, None, ("cudaLaunchKernel", 1)]


def test_a_correlation_id_of_zero_joins_nothing(tmp_path: Path) -> None:
    builder = TraceBuilder().api("cudaFree", 1, 2, correlation=0).kernel(6, 7, correlation=0)
    assert operations(read_back(builder, tmp_path))[0]["launch"] is None


def test_a_launch_may_be_submitted_by_any_thread_of_the_process(tmp_path: Path) -> None:
    trace = read_back(TraceBuilder().kernel(6, 7, call=(1, 2), thread=4999), tmp_path)
    assert operations(trace)[0]["launch"] == ("cudaLaunchKernel", 1)
    assert trace.threads[0].number == 4999


@pytest.mark.parametrize(
    ("way", "direction"),
    [
        ("h2d", "H2D"),
        ("h2a", "H2D"),
        ("d2h", "D2H"),
        ("a2h", "D2H"),
        ("d2d", "D2D"),
        ("a2a", "D2D"),
        ("a2d", "D2D"),
        ("d2a", "D2D"),
        ("h2h", "H2H"),
        ("p2p", "P2P"),
    ],
)
def test_each_kind_of_copy_has_its_direction(tmp_path: Path, way: str, direction: str) -> None:
    assert operations(read_back(TraceBuilder().copy(0, 1, way), tmp_path))[0]["direction"] == direction


@pytest.mark.parametrize("kind", [0, 99, -5])
def test_an_unknown_kind_of_copy_has_no_direction(tmp_path: Path, kind: int) -> None:
    found = operations(read_back(TraceBuilder().copy(0, 1, copyKind=kind), tmp_path))[0]
    assert (found["kind"], found["direction"], found["memory"]) == ("COPY", "OTHER", "UNKNOWN")


@pytest.mark.parametrize(
    ("way", "memory", "expected"),
    [
        ("h2d", "pinned", "PINNED"),
        ("h2d", "pageable", "PAGEABLE"),
        ("h2d", "managed", "MANAGED"),
        ("h2d", "unknown", "UNKNOWN"),
        ("d2h", "pinned", "PINNED"),
        ("d2h", "pageable", "PAGEABLE"),
        ("h2h", "pageable", "PAGEABLE"),
        ("d2d", "pinned", "DEVICE"),
        ("p2p", "pinned", "DEVICE"),
    ],
)
def test_a_copy_has_the_memory_of_its_host_side(tmp_path: Path, way: str, memory: str, expected: str) -> None:
    """In Nsight's own numbering pageable is 0 and pinned 1, not 1 and 2 as in CUPTI."""
    assert operations(read_back(TraceBuilder().copy(0, 1, way, memory=memory), tmp_path))[0]["memory"] == expected


def test_a_copy_between_hosts_is_pageable_when_either_side_is(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, "h2h", srcKind=1, dstKind=0).copy(2, 3, "h2h", srcKind=0, dstKind=1)
    assert [row["memory"] for row in operations(read_back(builder, tmp_path))] == ["PAGEABLE", "PAGEABLE"]


def test_memory_kinds_that_a_row_lacks_are_unknown(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, "h2d", srcKind=None, dstKind=None)
    assert operations(read_back(builder, tmp_path))[0]["memory"] == "UNKNOWN"


def test_enumerations_are_read_from_the_file(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, copyKind=2, srcKind=3, dstKind=0)
    builder.enumeration(
        "ENUM_CUDA_MEMCPY_OPER", ["CUDA_MEMCPY_KIND_PTOP", "CUDA_MEMCPY_KIND_DTOH", "CUDA_MEMCPY_KIND_HTOD"]
    )
    kinds = ["DEVICE", "PINNED", "UNKNOWN", "PAGEABLE"]
    builder.enumeration("ENUM_CUDA_MEM_KIND", [f"CUDA_MEMOPR_MEMORY_KIND_{kind}" for kind in kinds])
    found = operations(read_back(builder, tmp_path))[0]
    assert (found["direction"], found["memory"]) == ("H2D", "PAGEABLE")


def test_migrations_are_found_by_the_files_own_numbers(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, copyKind=1).copy(2, 3, copyKind=0)
    builder.enumeration("ENUM_CUDA_MEMCPY_OPER", ["CUDA_MEMCPY_KIND_HTOD", "CUDA_MEMCPY_KIND_UVM_DTOH"])
    trace = read_back(builder, tmp_path)
    assert [row["direction"] for row in operations(trace)] == ["H2D"]
    assert trace.migrations.direction.tolist() == [Direction.D2H]


def test_an_empty_enumeration_falls_back_to_the_documented_order(tmp_path: Path) -> None:
    builder = TraceBuilder(lazy=False).copy(0, 1, "d2h", memory="pageable")
    builder.enumeration("ENUM_CUDA_MEMCPY_OPER", []).enumeration("ENUM_CUDA_MEM_KIND", [])
    found = operations(read_back(builder, tmp_path))[0]
    assert (found["direction"], found["memory"]) == ("D2H", "PAGEABLE")


def test_unified_memory_migrations_are_no_operations(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 100).migration(20, 30, "h2d", 65536, cause=4).migration(10, 15, "d2h", device=1)
    trace = read_back(builder, tmp_path)
    assert [row["kind"] for row in operations(trace)] == ["KERNEL"]
    found = [(row["start"], row["n_bytes"], Direction(row["direction"]).name) for row in rows(trace.migrations)]
    assert found == [(10, 4096, "D2H"), (20, 65536, "H2D")]
    assert trace.migrations.cause.tolist() == [2, 4]
    assert [stream.number for stream in trace.streams] == [7], "their stream 0 in context 0 is no stream"
    assert list(trace.capture.devices) == [0, 1]


def test_the_causes_of_migrations_are_read_by_the_files_own_numbers(tmp_path: Path) -> None:
    cause = "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_"
    builder = TraceBuilder().kernel(0, 100).migration(20, 30, cause=0).migration(40, 50, cause=1)
    builder.enumeration("ENUM_CUDA_UNIF_MEM_MIGRATION", [f"{cause}EVICTION", f"{cause}COHERENCE"])
    assert read_back(builder, tmp_path).migrations.cause.tolist() == [4, 2]


def test_a_batch_counts_its_copies(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, copyCount=256).copy(2, 3).copy(4, 5, copyCount=None).kernel(6, 7)
    assert [row["pieces"] for row in operations(read_back(builder, tmp_path))] == [256, 1, 1, 0]


def test_a_peer_copy_names_both_devices(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, "p2p", device=1, srcDeviceId=1, dstDeviceId=0).copy(2, 3)
    trace = read_back(builder, tmp_path)
    assert [(row["source"], row["target"]) for row in operations(trace)] == [(1, 0), (-1, -1)]
    assert list(trace.capture.devices) == [0, 1]


def test_a_device_that_only_receives_peer_copies_is_a_device_of_the_trace(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1, "p2p", device=1, srcDeviceId=1, dstDeviceId=3)
    assert list(read_back(builder, tmp_path).capture.devices) == [1, 3]


def test_streams_are_told_apart_by_process_device_context_green_context_and_number(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1)
    for at, place in enumerate([{"process": 9}, {"device": 1}, {"context": 2}, {"green": 5}, {"stream": 8}], start=1):
        builder.kernel(at, at + 1, **place)
    trace = read_back(builder, tmp_path)
    assert len(trace.streams) == 6
    assert len(set(trace.operations.stream.tolist())) == 6
    assert trace.streams[trace.operations.stream[0]].label == "4711/0/7"


def test_no_green_context_is_green_context_0(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1, green=0).kernel(2, 3, green=None)
    assert len(read_back(builder, tmp_path).streams) == 1


@pytest.mark.parametrize("number", [13, 15, 16, 82])
def test_the_null_stream_may_have_any_number(tmp_path: Path, number: int) -> None:
    builder = TraceBuilder().null_stream(number).kernel(0, 1, stream=number)
    assert read_back(builder, tmp_path).streams[0].number == number


def test_kernels_are_named_and_shaped(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1, name="void gemm<float>(int)", shape=(2, 1, 1, 128, 1, 1))
    builder.kernel(2, 3, name="void gemm<float>(int)", shape=(1, 2, 1, 128, 1, 1)).kernel(4, 5, name="other")
    found = operations(read_back(builder, tmp_path))
    assert [row["name"] for row in found] == ["void gemm<float>(int)", "void gemm<float>(int)", "other"]
    assert len({row["shape"] for row in found}) == 3


def test_a_name_that_the_file_lost_is_unknown(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1, demangledName=987654)
    assert operations(read_back(builder, tmp_path))[0]["name"] == "[unknown 987654]"


def test_a_graph_traced_as_a_whole_is_one_operation_of_its_launch(tmp_path: Path) -> None:
    builder = TraceBuilder().graph(10, 50, call=(1, 2)).capture("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Graph")
    trace = read_back(builder, tmp_path)
    found = operations(trace)
    assert [(row["kind"], row["name"], row["launch"]) for row in found] == [
        ("GRAPH", "CUDA graph", ("cudaGraphLaunch", 1))
    ]
    assert trace.capture.graph_mode == "graph"


def test_the_nodes_of_a_graph_share_their_launch(tmp_path: Path) -> None:
    builder = TraceBuilder("3.25.0").capture("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")
    builder.kernel(10, 20, call=(1, 2), api="cudaGraphLaunch_v10000", correlation=5, graphNodeId=1, graphId=3)
    builder.kernel(20, 30, correlation=5, graphNodeId=2, graphId=3).copy(30, 40, correlation=5, graphNodeId=3)
    trace = read_back(builder, tmp_path)
    assert [row["launch"] for row in operations(trace)] == [("cudaGraphLaunch", 1)] * 3
    assert trace.capture.graph_mode == "node"


@pytest.mark.parametrize("shift", [-10_900_000_000, 1_700_000_000_000_000_000])
def test_times_may_be_negative_or_absolute(tmp_path: Path, shift: int) -> None:
    """Ranges opened before the capture start below 0; a normalised export counts from 1970."""
    builder = (
        TraceBuilder().kernel(shift + 20, shift + 30, call=(shift + 1, shift + 2)).range("forward 0", shift, shift + 9)
    )
    trace = read_back(builder, tmp_path)
    assert trace.operations.start.tolist() == [shift + 20]
    assert (trace.start_ns, trace.end_ns) == (shift, shift + 30)


def test_a_row_that_ends_before_it_starts_takes_no_time(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(20, 10).api("cudaFree", 9, 3)
    trace = read_back(builder, tmp_path)
    assert trace.operations.end.tolist() == [20]
    assert trace.calls.end.tolist() == [9]
