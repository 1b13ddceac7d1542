"""Findings that rest on the machine: pages on another node, a link below what it can do, traffic beside loads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from metric_rows import nic_samples
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.report import ReportOptions, build_report
from traceview.analysis.topology import parse_topology
from traceview.analysis.traffic import MachineOptions

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.report import Finding, Report

US = 1_000
MIB = 1 << 20
COMPUTE, LOAD, BACK = 7, 13, 17
LINK = {"pcie_generation": 5, "pcie_width": 16, "pcie_generation_max": 5, "pcie_width_max": 16}
FAR_GPU = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t16-31\t1\t\tN/A\n"


def loading(rate: float, *, compute_us: int = 100) -> TraceBuilder:
    """Write two forwards of four layers of 32 MiB each, loaded at ``rate`` GB/s; the host runs ahead."""
    builder = TraceBuilder()
    length = round(32 * MIB / rate)
    for number in (-1, 0):
        call = begin = (number + 2) * 100_000 * US
        loaded = computed = begin + 20 * US
        for layer in range(4):
            builder.copy(loaded, loaded + length, "h2d", 32 * MIB, stream=LOAD, call=(call + 10, call + 20))
            builder.range(f"load layer {layer}", call, call + 30)
            loaded, call = loaded + length, call + 40
            computed = max(computed, loaded)
            builder.kernel(computed, computed + compute_us * US, stream=COMPUTE, call=(call + 10, call + 20))
            builder.range(f"compute layer {layer}", call, call + 30)
            computed, call = computed + compute_us * US, call + 40
        builder.range(f"forward {number}", begin - 10, computed + US)
    return builder


def judged(builder: TraceBuilder, folder: Path, device: dict[str, Any], **options: Any) -> Report:
    """Return the report with facts of GPU 0 and of a pool whose pages lie on node 0."""
    pool = {"name": "pool", "bytes": 128 * MIB, "pinned": True, "pages_by_node": {"0": 32_768}}
    facts = {"facts": 1, "devices": [{"id": 0, **LINK, **device}], "host_buffers": [pool]}
    builder.mark(f"facts {json.dumps(facts)}", 0, domain="traceview")
    return build_report(read_back(builder, folder), ReportOptions(machine=MachineOptions(**options)))


def by_id(report: Report) -> dict[str, Finding]:
    return {finding.id: finding for finding in report.findings}


def test_slow_loads_from_another_node_are_charged_to_it(tmp_path: Path) -> None:
    found = by_id(judged(loading(40.0), tmp_path, {"gpu_numa_node": 1}))["remote_numa"]
    assert "100 % of the pages" in found.evidence[0]
    assert "(1), most on node 0" in found.evidence[0]
    # each load takes 839 us where the link gets 612, and all four are waited for
    exposed, lost = 4 * 838_861 - 300 * US, 1 - 40.0 / (0.87 * 63.015)
    assert found.cost_ns == pytest.approx(exposed * lost, rel=0.02)


def test_the_topology_tells_the_node_where_the_facts_do_not(tmp_path: Path) -> None:
    topology = parse_topology(FAR_GPU)
    assert "remote_numa" in by_id(judged(loading(40.0), tmp_path, {}, topology=topology))


@pytest.mark.parametrize("device", [{"gpu_numa_node": 0}, {}, {"gpu_numa_node": -1}, {"gpu_numa_node": "1"}])
def test_pages_at_home_or_of_unknown_place_are_no_cause(device: dict[str, Any], tmp_path: Path) -> None:
    assert "remote_numa" not in by_id(judged(loading(40.0), tmp_path, device))


def test_remote_pages_that_cost_no_rate_are_no_finding(tmp_path: Path) -> None:
    report = judged(loading(55.0, compute_us=700), tmp_path, {"gpu_numa_node": 1})
    assert report.findings == ()


def test_a_degraded_link_is_named_and_charged(tmp_path: Path) -> None:
    report = judged(loading(27.0), tmp_path, {"pcie_width": 8, "pcie_read": "under load"})
    assert report.trace.degraded == {"0": "PCIe 5.0 x8, though GPU and slot can do 5.0 x16"}
    found = by_id(report)["low_link_rate"]
    assert "the link is degraded: PCIe 5.0 x8, though GPU and slot can do 5.0 x16" in found.evidence


@pytest.mark.parametrize(
    "device",
    [
        {"pcie_generation": 1, "pcie_read": "while idle"},
        {},
        {"pcie_width_max": None},
        {"pcie_width": "8"},
    ],
)
def test_an_idle_link_and_an_unknown_one_are_not_degraded(device: dict[str, Any], tmp_path: Path) -> None:
    assert judged(loading(55.0), tmp_path, device).trace.degraded == {}


def test_traffic_beside_the_loads_is_named_with_both_rates(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in (-1, 0):
        call = begin = (number + 2) * 100_000 * US
        at = begin + 20 * US
        for layer in range(8):
            beside = layer >= 4
            end = at + (800 if beside else 600) * US
            builder.copy(at, end, "h2d", 32 * MIB, stream=LOAD, call=(call + 10, call + 20))
            builder.range(f"load layer {layer}", call, call + 30)
            builder.kernel(end, end + 100 * US, stream=COMPUTE, call=(call + 50, call + 60))
            builder.range(f"compute layer {layer}", call + 40, call + 70)
            if beside:
                builder.copy(at, end, "d2h", 32 * MIB, stream=BACK, call=(call + 80, call + 90))
            at, call = end, call + 100
        builder.range(f"forward {number}", begin - 10, at + 200 * US)
    found = by_id(judged(builder, tmp_path, {}))["duplex_slowdown"]
    assert found.evidence[0] == "loads run at 41.9 GB/s beside d2h, alone at 55.9 GB/s"
    # of 4 * 800 us beside each other a quarter is lost
    assert found.cost_ns == 800 * US


def test_what_a_nic_receives_beside_the_loads_is_charged_to_it(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in (-1, 0):
        call = begin = (number + 2) * 100_000 * US
        at = begin + 20 * US
        for layer in range(8):
            end = at + (2_000 if layer >= 4 else 1_200) * US
            builder.copy(at, end, "h2d", 64 * MIB, stream=LOAD, call=(call + 10, call + 20))
            builder.range(f"load layer {layer}", call, call + 30)
            builder.kernel(end, end + 100 * US, stream=COMPUTE, call=(call + 50, call + 60))
            builder.range(f"compute layer {layer}", call + 40, call + 70)
            at, call = end, call + 100
        builder.range(f"forward {number}", begin - 10, at + 200 * US)
        received = [(at - (8 - step) * 1_000 * US, at - (7 - step) * 1_000 * US, 20_000_000) for step in range(8)]
        nic_samples(builder, "IB: Bytes received", received, unit="bytes")
    report = judged(builder, tmp_path, {})
    found = by_id(report)
    # four loads take 0.8 ms longer than the four before
    assert found["inbound_contention"].cost_ns == 3_200 * US
    assert found["inbound_contention"].evidence == (
        "loads run at 33.6 GB/s beside rdma in, alone at 55.9 GB/s",
        "without it a forward would take 9.7 ms instead of 12.9 ms",
    )
    assert "without it a forward would take 5.2 ms instead of 12.9 ms" in found["load_bound"].evidence
    assert "low_rate" not in [lane.verdict for lane in report.lanes]
