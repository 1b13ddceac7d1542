"""What an export says about itself; and synchronisations, told apart by the ids that they lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from export_writer import change
from plain_trace import read_back, records
from trace_builder import INVALID, TraceBuilder

import traceview

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("layout", "schema", "product"),
    [
        ("none", None, None),
        ("2.9.1", "2.9.1", "2022.2.1.31"),
        ("3.1.7", "3.1.7", "2023.2"),
        ("3.28.1", "3.28.1", "2026.4"),
    ],
)
def test_versions_stand_in_whichever_table_the_version_has(
    tmp_path: Path, layout: str, schema: str | None, product: str | None
) -> None:
    capture = read_back(TraceBuilder(layout).kernel(0, 1), tmp_path).capture
    assert (capture.schema_version, capture.product_version) == (schema, product)


def test_a_gpu_is_named_by_the_id_that_the_process_uses(tmp_path: Path) -> None:
    """CUDA_VISIBLE_DEVICES=1 makes the machine's GPU 1 the process's device 0."""
    builder = TraceBuilder().gpu(0, "NVIDIA H200", gpu=1).kernel(0, 1)
    builder.row("TARGET_INFO_GPU", id=0, name="NVIDIA T4")
    assert read_back(builder, tmp_path).capture.devices == {0: "NVIDIA H200"}


def test_without_a_mapping_ids_are_taken_as_they_are(tmp_path: Path) -> None:
    builder = TraceBuilder("3.13.2").gpu(0, "NVIDIA H200").kernel(0, 1).kernel(0, 1, device=1)
    assert read_back(builder, tmp_path).capture.devices == {0: "NVIDIA H200", 1: None}


def test_processes_are_those_of_any_row(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1, process=3).api("cudaFree", 0, 1, process=2).range("r", 0, 1, process=1)
    assert read_back(builder, tmp_path).capture.processes == (1, 2, 3)


def test_complaints_of_the_profiler_are_kept_once(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1).diagnostic("Number of CUDA events collected: 5")
    for _ in range(2):
        builder.diagnostic("Not all CUDA events might have been collected.")
    assert read_back(builder, tmp_path).capture.diagnostics == ("Not all CUDA events might have been collected.",)


def test_what_the_file_holds_and_lacks_is_listed(tmp_path: Path) -> None:
    capture = read_back(TraceBuilder(lazy=False).kernel(0, 1).copy(0, 1).range("r", 0, 1), tmp_path).capture
    assert set(capture.captured) == {"kernels", "copies", "nvtx"}
    assert {"api_calls", "synchronisations", "event_records", "call_stacks", "gpu_metrics"} <= set(capture.missing)


def test_facts_are_read_from_the_mark_in_our_domain(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1).mark('facts {"gpu": "not ours"}', 1)
    builder.mark("facts are no JSON", 2, domain="traceview").mark('facts {"broken": ', 3, domain="traceview")
    builder.mark('facts ["no object"]', 4, domain="traceview")
    builder.mark('facts {"gpu": "H200", "pcie": {"generation": 5}}', 5, domain="traceview", registered=True)
    builder.mark('facts {"gpu": "later"}', 6, domain="traceview")
    assert read_back(builder, tmp_path).capture.facts == {"gpu": "H200", "pcie": {"generation": 5}}


def test_without_a_mark_there_are_no_facts(tmp_path: Path) -> None:
    assert read_back(TraceBuilder().kernel(0, 1), tmp_path).capture.facts is None


def test_repeated_names_in_the_captures_description_are_no_key(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1).capture("ENV", "A=1").capture("ENV", "B=2")
    builder.capture("CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node").capture("ENV", "C=3")
    assert read_back(builder, tmp_path).capture.graph_mode == "node"


def test_a_table_without_its_columns_says_nothing(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(0, 1).write(tmp_path / "trace.sqlite")
    change(path, "CREATE TABLE DIAGNOSTIC_EVENT (severity)", "CREATE TABLE TARGET_INFO_GPU (vmId)")
    change(path, "DROP TABLE META_DATA_EXPORT", "CREATE TABLE META_DATA_EXPORT (id)")
    capture = traceview.read(path).capture
    assert (capture.diagnostics, capture.devices, capture.schema_version) == ((), {0: None}, None)


def all_four(builder: TraceBuilder) -> TraceBuilder:
    builder.record(3, stream=13, call=(1, 2), sync=9).wait(3, stream=7, call=(3, 4), sync=9)
    builder.stream_sync(stream=7, call=(5, 6)).event_sync(3, call=(7, 8)).device_sync(call=(9, 10))
    return builder.event_sync(3, call=(11, 12), api="cudaEventQuery_v3020")


def test_synchronisations_are_told_apart_by_the_ids_they_lack(tmp_path: Path) -> None:
    trace = read_back(all_four(TraceBuilder()), tmp_path)
    assert records(trace, "event_waits") == [{"call": ("cudaStreamWaitEvent", 3), "stream": 7, "event": 3, "sync": 9}]
    assert [row["call"] for row in records(trace, "stream_syncs")] == [("cudaStreamSynchronize", 5)]
    assert records(trace, "event_records") == [{"call": ("cudaEventRecord", 1), "stream": 13, "event": 3, "sync": 9}]


@pytest.mark.parametrize("number", range(6))
def test_the_number_of_a_synchronisation_means_nothing(tmp_path: Path, number: int) -> None:
    path = all_four(TraceBuilder()).write(tmp_path / "trace.sqlite")
    trace = traceview.read(change(path, f"UPDATE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION SET syncType = {number}"))
    assert len(trace.event_waits) == len(trace.stream_syncs) == 1


def test_a_wait_without_a_call_row_is_kept(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(0, 1)
    row = {"start": 5, "end": 6, "contextId": 1, "streamId": 7, "eventId": 3, "correlationId": 88}
    builder.row("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", **row)
    assert [found["call"] for found in records(read_back(builder, tmp_path), "event_waits")] == [None]


def test_a_synchronisation_that_names_a_wrong_device_still_finds_its_stream(tmp_path: Path) -> None:
    """Schema 3.25 writes device 0 for every synchronisation."""
    builder = TraceBuilder("3.25.0").kernel(0, 1, device=1, context=2, stream=15)
    builder.stream_sync(stream=15, call=(5, 6), device=0, context=2)
    trace = read_back(builder, tmp_path)
    assert [(stream.device, stream.number) for stream in trace.streams] == [(1, 15)]


def test_an_invalid_stream_is_no_stream_of_the_trace(tmp_path: Path) -> None:
    trace = read_back(all_four(TraceBuilder()), tmp_path)
    assert INVALID not in {stream.number for stream in trace.streams}
