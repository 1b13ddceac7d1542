"""Inbound PCIe traffic: what a GPU's counter saw beside what the trace shows, and RDMA by the NICs' counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from metric_rows import RX, gpu_samples, nic_samples
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview.analysis.doctor import abstentions
from traceview.analysis.forwards import find_forwards
from traceview.analysis.inbound import LinkMeter, measure_inbound
from traceview.analysis.links import LinkOptions
from traceview.analysis.network import measure_network
from traceview.analysis.report import ReportOptions, build_report
from traceview.analysis.traffic import MachineOptions, find_traffic
from traceview.model import Samples

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from traceview.model import Trace
    from traceview.report_links import Inbound

MS = 1_000_000
STEP = 100_000
LINK = LinkOptions(gbps=50.0)


def sampled(percent: Callable[[int], int], *, domain: str | None = None, layout: str = "3.20.3") -> TraceBuilder:
    """Return a forward from 1 to 5 ms that loads 2 x 40 MB at 40 GB/s in its first 2 ms, sampled every 0.1 ms.

    ``percent`` is what the counter says at a time in steps of 0.1 ms.
    """
    builder = TraceBuilder(layout).gpu(0, "NVIDIA H200")
    loads, computes = [[(MS, 2 * MS)], [(2 * MS, 3 * MS)]], [[(3 * MS, 4 * MS)], [(4 * MS, 5 * MS)]]
    layered_forward(builder, start=0, loads=loads, computes=computes, n_bytes=40 * MS)
    return gpu_samples(builder, RX, {step * STEP: percent(step) for step in range(70)})


def read(builder: TraceBuilder, folder: Path, *, metrics: bool = True) -> Trace:
    return traceview.read(builder.write(folder / "trace.sqlite"), metrics=metrics)


def inbound(trace: Trace, link: LinkOptions = LINK) -> list[Inbound]:
    made = build_report(trace, ReportOptions(machine=MachineOptions(link)))
    return list(made.inbound)


def while_loading(step: int) -> bool:
    return 10 < step <= 30


def test_what_the_copies_move_is_explained(tmp_path: Path) -> None:
    [found] = inbound(read(sampled(lambda step: 84 * while_loading(step)), tmp_path))
    assert (found.forward, found.device, found.received_bytes) == (0, 0, 84 * MS)
    assert (found.explained_bytes, found.overhead_bytes, found.unexplained_bytes) == (80 * MS, 4 * MS, 0)
    assert (found.ceiling, found.ceiling_from) == (50.0, "option")


def test_what_nobody_traced_is_left_over(tmp_path: Path) -> None:
    """Beside the loads, 20 % of a link of 50 GB/s for the 4 ms of the forward: 40 MB, of which 8 pass as overhead."""
    [found] = inbound(read(sampled(lambda step: 20 + 80 * while_loading(step)), tmp_path))
    assert found.received_bytes == 120 * MS
    assert (found.explained_bytes, found.overhead_bytes, found.unexplained_bytes) == (80 * MS, 8 * MS, 32 * MS)


def test_a_transfer_over_the_edge_counts_with_its_part(tmp_path: Path) -> None:
    builder = sampled(lambda step: 50 if while_loading(step) else 0)
    builder.copy(4 * MS, 6 * MS, "h2d", 20 * MS, stream=77)
    [found] = inbound(read(builder, tmp_path))
    assert found.explained_bytes == 90 * MS


def test_peer_copies_over_nvlink_explain_nothing(tmp_path: Path) -> None:
    builder = sampled(lambda step: 84 * while_loading(step))
    place = {"device": 1, "context": 2, "stream": 40, "srcDeviceId": 1, "dstDeviceId": 0}
    builder.copy(3 * MS, 4 * MS, "p2p", 390 * MS, **place)
    [found] = inbound(read(builder, tmp_path))
    assert found.explained_bytes == 80 * MS


def reasons(trace: Trace, link: LinkOptions) -> dict[str, str]:
    found = abstentions(trace, (), MachineOptions(link))
    return {one.measure: f"{one.reason} -> {one.fix}" for one in found}


def test_unread_metrics_are_named_with_the_option_to_type(tmp_path: Path) -> None:
    trace = read(sampled(lambda step: 10), tmp_path, metrics=False)
    assert inbound(trace) == []
    assert "--metrics" in reasons(trace, LINK)["unexplained inbound traffic"]


def test_percent_of_an_unknown_link_is_no_number_of_bytes(tmp_path: Path) -> None:
    trace = read(sampled(lambda step: 10), tmp_path)
    assert inbound(trace, LinkOptions()) == []
    assert "--pcie" in reasons(trace, LinkOptions())["unexplained inbound traffic"]
    assert "unexplained inbound traffic" not in reasons(trace, LINK)


def test_too_few_samples_in_a_forward_say_nothing(tmp_path: Path) -> None:
    builder = sampled(lambda step: 0)
    trace = read(builder, tmp_path)
    assert trace.links is not None
    few = replace(trace.links[0], received=trace.links[0].received.take(slice(12, 20)))
    assert inbound(replace(trace, links=(few,))) == []


def test_no_metrics_no_inbound(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=[[(10, 20)]], computes=[[(20, 30)]])
    assert inbound(read(builder, tmp_path)) == []


@pytest.mark.parametrize(("low", "high", "n_bytes"), [(0, 10, 10), (5, 15, 20), (10, 20, 30), (-9, 5, 5), (25, 99, 0)])
def test_the_meter_adds_up_parts_of_samples(low: int, high: int, n_bytes: int) -> None:
    """Two samples of 10 ns, at 20 and at 60 percent of 5 bytes per ns."""
    samples = Samples(np.array([0, 10]), np.array([10, 20]), np.array([20, 60]))
    meter = LinkMeter(samples, 5.0)
    assert meter.received(np.array([low]), np.array([high])).tolist() == [n_bytes]


def test_bytes_of_a_kernel_that_loads_come_from_the_counter_where_no_range_says_them(tmp_path: Path) -> None:
    """A kernel reads for 2 ms at 80 % of 50 GB/s: 80 MB, less what the protocol adds."""
    builder = TraceBuilder().range("forward 0", 0, 100).range("load layer 0", 10, 20)
    builder.kernel(MS, 3 * MS, name="mover", stream=21, call=(12, 14))
    builder.range("compute layer 0", 30, 40).kernel(3 * MS, 5 * MS, call=(32, 34))
    gpu_samples(builder, RX, {step * STEP: 80 * while_loading(step) for step in range(70)})
    trace = read(builder, tmp_path)
    machine = MachineOptions(LINK)
    [found] = find_traffic(trace, find_forwards(trace), machine)
    assert found.transfers.total_bytes == pytest.approx(80 * MS / 1.094, rel=1e-6)
    assert "bytes and rate of loading kernels" not in [one.measure for one in abstentions(trace, (), machine, (found,))]
    [entry] = measure_inbound(trace, build_report(trace).forwards, (found,), LINK)
    assert entry.unexplained_bytes == 0


def test_rdma_is_told_by_port_with_the_time_in_which_it_was_more_than_chatter(tmp_path: Path) -> None:
    builder = TraceBuilder("3.25.0").kernel(0, 10)
    nic_samples(builder, "IB: Bytes received", [(0, MS, 40 * MS), (MS, 2 * MS, 20 * MS), (2 * MS, 3 * MS, 50)])
    nic_samples(builder, "IB: Bytes sent", [(0, MS, 70)])
    receive, send = sorted(measure_network(read(builder, tmp_path)), key=lambda one: one.direction)
    assert (receive.nic, receive.port, receive.n_bytes, receive.busy_ns) == ("mlx5_1", 1, 60 * MS + 50, 2 * MS)
    assert (receive.rate, receive.peak_rate) == (pytest.approx(30.0), pytest.approx(40.0))
    assert (send.direction, send.busy_ns, send.rate) == ("send", 0, None)
