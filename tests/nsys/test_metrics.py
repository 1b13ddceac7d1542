"""Sampled counters: PCIe of the GPUs on request, RDMA of the NICs always."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from metric_rows import RX, TX, generic_samples, gpu_samples, nic_samples
from trace_builder import TraceBuilder

import traceview
from traceview.model import Content

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Samples, Trace

    Plain = list[tuple[int, int, int]]


def read(builder: TraceBuilder, folder: Path, *, metrics: bool = True) -> Trace:
    return traceview.read(builder.kernel(0, 10).write(folder / "trace.sqlite"), metrics=metrics)


def plain(samples: Samples) -> Plain:
    return list(zip(samples.start.tolist(), samples.end.tolist(), samples.value.tolist(), strict=True))


def received(trace: Trace) -> dict[int, Plain]:
    assert trace.links is not None
    return {one.device: plain(one.received) for one in trace.links}


def test_a_value_is_the_mean_since_the_sample_before_it(tmp_path: Path) -> None:
    builder = gpu_samples(TraceBuilder(), RX, {100: 5, 200: 88, 300: 92})
    gpu_samples(builder, TX, {100: 1, 200: 6, 300: 7})
    trace = read(builder, tmp_path)
    assert received(trace) == {0: [(100, 200, 88), (200, 300, 92)]}
    assert trace.links is not None
    assert plain(trace.links[0].sent) == [(100, 200, 6), (200, 300, 7)]


def test_nothing_is_read_unless_asked_for(tmp_path: Path) -> None:
    trace = read(gpu_samples(TraceBuilder(), RX, {100: 5, 200: 88}), tmp_path, metrics=False)
    assert trace.links is None
    assert Content.GPU_METRICS in trace.capture.captured


def test_samples_before_the_capture_are_dropped_and_values_clamped(tmp_path: Path) -> None:
    trace = read(gpu_samples(TraceBuilder(), RX, {-50: 90, 100: 5, 200: -3, 300: 140}), tmp_path)
    assert received(trace) == {0: [(100, 200, 0), (200, 300, 100)]}


def test_samples_are_put_in_time_order(tmp_path: Path) -> None:
    trace = read(gpu_samples(TraceBuilder(), RX, {300: 3, 100: 1, 200: 2}), tmp_path)
    assert received(trace) == {0: [(100, 200, 2), (200, 300, 3)]}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("PCIe RX Throughput [Throughput %]", True),
        ("PCIe Read Throughput", True),
        ("pcie rx throughput", True),
        ("PCIe Read Requests to BAR1 [Requests]", False),
        ("NVLink RX Responses User Data [Throughput %]", False),
        ("DRAM Read Bandwidth [Throughput %]", False),
    ],
)
def test_the_pcie_counters_are_known_by_name(name: str, counts: bool, tmp_path: Path) -> None:
    trace = read(gpu_samples(TraceBuilder(), name, {100: 5, 200: 88}), tmp_path)
    assert received(trace) == ({0: [(100, 200, 88)]} if counts else {})


def test_gpus_are_named_by_the_ids_that_processes_use(tmp_path: Path) -> None:
    builder = TraceBuilder().gpu(0, "NVIDIA H200", gpu=3).gpu(1, "NVIDIA H200", gpu=2)
    gpu_samples(builder, RX, {100: 5, 200: 33}, gpu=3)
    gpu_samples(builder, RX, {100: 5, 200: 22}, gpu=2)
    gpu_samples(builder, RX, {100: 5, 200: 11}, gpu=1)
    assert received(read(builder, tmp_path)) == {0: [(100, 200, 33)], 1: [(100, 200, 22)]}


def test_older_exports_hold_the_counters_as_json(tmp_path: Path) -> None:
    samples: dict[int, dict[str, int | str]] = {
        100: {"SM Active": "3", "PCIe RX Throughput": "7"},
        200: {"SM Active": "3", "PCIe RX Throughput": "88"},
        300: {"SM Active": "3"},
    }
    trace = read(generic_samples(TraceBuilder("3.4.0"), samples), tmp_path)
    assert received(trace) == {0: [(100, 200, 88)]}
    assert Content.GPU_METRICS in trace.capture.captured


def test_generic_events_of_another_kind_are_no_gpu_metrics(tmp_path: Path) -> None:
    builder = TraceBuilder("3.4.0").row("GENERIC_EVENT_TYPES", typeId=9, data='{"Name": "sched_switch"}')
    builder.row("GENERIC_EVENTS", timestamp=5, typeId=9, data="no json")
    trace = read(builder, tmp_path)
    assert trace.links == ()
    assert Content.GPU_METRICS in trace.capture.missing


@pytest.mark.parametrize(
    ("unit", "value", "n_bytes"),
    [
        ("bytes/ms", 47_000_000, 94_000_000),
        ("B/s", 1_000_000_000, 2_000_000),
        ("MB/s", 1_000, 2_000_000),
        ("MiB/s", 1_000, 2_097_152),
        ("bytes", 512, 512),
    ],
)
def test_rdma_samples_are_bytes_whatever_the_unit(unit: str, value: int, n_bytes: int, tmp_path: Path) -> None:
    samples = [(0, 2_000_000, value)]
    trace = read(nic_samples(TraceBuilder("3.25.0"), "IB: Bytes received", samples, unit=unit), tmp_path)
    assert [(one.nic, one.port, one.direction) for one in trace.nics] == [("mlx5_1", 1, "receive")]
    assert plain(trace.nics[0].samples) == [(0, 2_000_000, n_bytes)]


def test_rdma_counters_are_told_from_others(tmp_path: Path) -> None:
    builder = TraceBuilder("3.25.0")
    for counter in ("IB: Bytes sent", "IPoIB: Bytes sent", "IB: Packets sent", "IB: Send waits"):
        nic_samples(builder, counter, [(0, 1_000_000, 9)], unit="packets/ms" if "Packets" in counter else "bytes/ms")
    assert [(one.direction, plain(one.samples)) for one in read(builder, tmp_path).nics] == [
        ("send", [(0, 1_000_000, 9)])
    ]


def test_each_port_of_each_nic_is_its_own(tmp_path: Path) -> None:
    builder = TraceBuilder("3.25.0")
    for nic, port in ((1, 1), (1, 2), (2, 1)):
        nic_samples(builder, "IB: Bytes received", [(0, 1_000_000, 10 * nic + port)], nic=nic, port=port)
    found = {(one.nic, one.port): one.samples.value.tolist() for one in read(builder, tmp_path).nics}
    assert found == {("mlx5_1", 1): [11], ("mlx5_1", 2): [12], ("mlx5_2", 1): [21]}


def test_a_list_of_nics_alone_is_no_metric(tmp_path: Path) -> None:
    trace = read(TraceBuilder("3.25.0").row("TARGET_INFO_NIC_INFO", nicId=1, name="mlx5_0"), tmp_path)
    assert trace.nics == ()
    assert Content.NIC_METRICS in trace.capture.missing
