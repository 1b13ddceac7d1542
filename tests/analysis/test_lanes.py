"""Lanes: predicted by paths, measured with and without company, and judged only where both are known."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from metric_rows import nic_samples
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.doctor import abstentions
from traceview.analysis.forwards import find_forwards
from traceview.analysis.lanes import measure_lanes
from traceview.analysis.links import LinkOptions
from traceview.analysis.topology import parse_topology
from traceview.analysis.traffic import MachineOptions, find_traffic

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Trace
    from traceview.report_links import Lane

MS = 1_000_000
PCIE_5 = MachineOptions(LinkOptions(pcie=(5, 16)))
MATRIX = "\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t{0}\tPIX\t0-9\t0\nGPU1\t{0}\t X \tSYS\t10-19\t1\n"
LEGEND = "NIC0\tPIX\tSYS\t X \n\nNIC Legend:\n  NIC0: mlx5_1\n"


def topology(relation: str) -> MachineOptions:
    return MachineOptions(PCIE_5.link, parse_topology(MATRIX.format(relation) + LEGEND))


def copies(
    builder: TraceBuilder, first: int, rates: list[float], direction: str = "h2d", *, ms: int = 1, **options: Any
) -> TraceBuilder:
    """Add copies that follow each other, ``ms`` long each, at these rates in GB/s, from ``first`` ms on."""
    for position, rate in enumerate(rates):
        start = (first + position * ms) * MS
        builder.copy(start, start + ms * MS, direction, round(rate * ms * MS), **options)
    return builder


def peer(builder: TraceBuilder, first: int, rates: list[float], **options: Any) -> TraceBuilder:
    """Add copies from GPU 1 into GPU 0."""
    place = {"device": 1, "stream": 40, "srcDeviceId": 1, "dstDeviceId": 0}
    return copies(builder, first, rates, "p2p", **place, **options)


def lanes(trace: Trace, machine: MachineOptions | None = PCIE_5) -> list[Lane]:
    return list(measure_lanes(find_traffic(trace, find_forwards(trace), machine)))


def lane(found: list[Lane], name: str, beside: str | None = None, device: int = 0) -> Lane:
    return next(one for one in found if (one.transfer_class, one.beside, one.device) == (name, beside, device))


def test_opposite_directions_slow_each_other_a_little(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.0, 55.0, 50.0, 50.0, 50.0])
    found = lanes(read_back(copies(builder, 3, [50.0, 50.0, 50.0], "d2h", stream=20), tmp_path))
    both = lane(found, "h2d", "d2h")
    assert (both.rate_alone, both.rate_together) == (pytest.approx(55.0), pytest.approx(50.0))
    assert both.slowdown == pytest.approx(1 / 11)
    assert (both.shared_lane, both.verdict, both.together_ns) == (False, "duplex_slowdown", 3 * MS)
    assert both.links == ("DRAM out", "RC down", "GPU 0 in")
    assert lane(found, "d2h").links == ("GPU 0 out", "RC up", "DRAM in")


def test_company_that_slows_nobody_is_no_conflict(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.2, 55.1, 55.0, 55.2, 54.9])
    found = lanes(read_back(copies(builder, 3, [50.0, 50.0, 50.0], "d2h", stream=20), tmp_path))
    assert lane(found, "h2d", "d2h").verdict == "no_conflict"


def test_what_has_no_company_has_no_pair(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.0])
    found = lanes(read_back(copies(builder, 5, [50.0, 50.0], "d2h", stream=20), tmp_path))
    assert [one.beside for one in found] == [None, None]


def test_transfers_that_are_partly_alone_tell_both_rates_together(tmp_path: Path) -> None:
    """Each copy of 1 ms runs at 50 alone and at 40 beside the other direction, which covers a different part of it."""
    builder = TraceBuilder()
    for position, share in enumerate((0.2, 0.3, 0.4, 0.6, 0.75, 0.85)):
        start = position * 2 * MS
        builder.copy(start, start + MS, "h2d", round(MS * (50 * (1 - share) + 40 * share)))
        builder.copy(start, start + round(share * MS), "d2h", 30 * MS, stream=20)
    both = lane(lanes(read_back(builder, tmp_path)), "h2d", "d2h")
    assert both.rate_alone == pytest.approx(50.0, rel=1e-3)
    assert both.rate_together == pytest.approx(40.0, rel=1e-3)


def test_always_together_is_not_measured(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [50.0, 50.0, 50.0])
    both = lane(lanes(read_back(copies(builder, 0, [50.0] * 3, "d2h", stream=20), tmp_path)), "h2d", "d2h")
    assert (both.rate_alone, both.rate_together) == (None, pytest.approx(50.0))
    assert both.verdict == "not_measured"
    assert both.slowdown is None


def test_a_rate_above_the_link_proves_nvlink_and_nvlink_slows_no_load(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.0, 55.0, 55.0, 55.0])
    found = lanes(read_back(peer(builder, 2, [313.0, 396.0, 396.0]), tmp_path))
    both = lane(found, "h2d", "p2p in")
    assert (both.shared_lane, both.verdict) == (False, "no_conflict")
    alone = lane(found, "p2p in")
    assert (alone.links, alone.path_from) == (("GPU 1 NVLink out", "GPU 0 NVLink in"), "rate")
    assert lane(found, "p2p out", device=1).links == alone.links


def test_a_third_class_does_not_count(tmp_path: Path) -> None:
    """The peer copies run beside all loads; only those that the other direction slows as well are slow."""
    builder = copies(TraceBuilder(), 0, [55.0, 55.0, 55.0, 55.0, 50.0, 50.0, 50.0])
    peer(builder, 2, [396.0] * 5)
    found = lanes(read_back(copies(builder, 4, [50.0] * 3, "d2h", stream=20), tmp_path))
    assert lane(found, "h2d", "p2p in").slowdown == pytest.approx(0.0, abs=1e-6)
    assert lane(found, "h2d", "p2p in").verdict == "no_conflict"
    assert lane(found, "h2d", "d2h").verdict == "duplex_slowdown"


@pytest.mark.parametrize(
    ("machine", "shared", "verdict", "origin"),
    [
        (PCIE_5, True, "inbound_contention", "presumed"),
        (topology("PIX"), True, "inbound_contention", "topology"),
        (topology("SYS"), True, "inbound_contention", "topology"),
        (topology("NV4"), False, "slowed_elsewhere", "topology"),
    ],
)
def test_peer_copies_at_the_speed_of_pcie_go_by_the_topology(
    machine: MachineOptions, shared: bool, verdict: str, origin: str, tmp_path: Path
) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.0, 55.0, 28.0, 28.0, 28.0])
    trace = read_back(peer(builder, 3, [27.0] * 3), tmp_path)
    both = lane(lanes(trace, machine), "h2d", "p2p in")
    assert (both.shared_lane, both.verdict) == (shared, verdict)
    assert lane(lanes(trace, machine), "p2p in").path_from == origin
    told = [one.measure for one in abstentions(trace, (), machine, find_traffic(trace, (), machine))]
    assert ("links of the peer copies" in told) == (origin == "presumed")


def test_peer_copies_over_a_switch_do_not_pass_the_root_complex(tmp_path: Path) -> None:
    trace = read_back(peer(copies(TraceBuilder(), 0, [55.0]), 3, [27.0]), tmp_path)
    assert lane(lanes(trace, topology("PIX")), "p2p in").links == ("GPU 1 out", "GPU 0 in")
    assert lane(lanes(trace, topology("NODE")), "p2p in").links[1].startswith("RC[0]")


def test_nvlinks_of_the_topology_give_a_ceiling(tmp_path: Path) -> None:
    builder = TraceBuilder().gpu(0, "NVIDIA H200").gpu(1, "NVIDIA H200")
    alone = lane(lanes(read_back(peer(builder, 0, [396.0] * 3), tmp_path), topology("NV18")), "p2p in")
    assert (alone.ceiling, alone.ceiling_from, alone.verdict) == (450.0, "topology", "full_rate")


def test_small_copies_measure_nothing(tmp_path: Path) -> None:
    """A read-back of 2 bytes takes as long as one of nothing, alone or not."""
    builder = copies(TraceBuilder(), 0, [55.0] * 6)
    for at in (1, 2, 3, 20, 21, 22):
        builder.copy(at * MS, at * MS + 1500 * (1 + (at < 9)), "d2h", 2, stream=20)
    found = lanes(read_back(builder, tmp_path))
    assert lane(found, "d2h", "h2d").verdict == "not_measured"
    assert lane(found, "h2d", "d2h").verdict == "not_measured"


def test_token_ids_do_not_stand_for_loads(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0] * 3)
    for at in range(10, 40):
        builder.copy(at * MS, at * MS + 2_000, "h2d", 4096)
    assert lane(lanes(read_back(builder, tmp_path)), "h2d").rate_alone == pytest.approx(55.0)


@pytest.mark.parametrize(
    ("options", "memory", "rates", "n_bytes_ms", "verdict"),
    [
        (LinkOptions(pcie=(5, 16)), "pinned", [55.0] * 3, 1, "full_rate"),
        (LinkOptions(pcie=(5, 16)), "pinned", [20.0] * 3, 1, "low_rate"),
        (LinkOptions(pcie=(5, 16)), "pageable", [8.0] * 3, 1, "pageable"),
        (LinkOptions(), "pinned", [20.0] * 3, 1, "unknown"),
        (LinkOptions(), "unknown", [20.0] * 3, 1, "unknown"),
    ],
)
def test_a_class_is_held_against_its_link_where_that_is_known(
    options: LinkOptions, memory: str, rates: list[float], n_bytes_ms: int, verdict: str, tmp_path: Path
) -> None:
    trace = read_back(copies(TraceBuilder(), 0, rates, memory=memory, ms=n_bytes_ms), tmp_path)
    assert [one.verdict for one in lanes(trace, MachineOptions(options))] == [verdict]


def test_small_pieces_are_slow_whatever_the_link(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for at in range(4):
        builder.copy(at * 10_000, at * 10_000 + 4_000, "h2d", 64 << 10)
    assert [one.verdict for one in lanes(read_back(builder, tmp_path))] == ["small_pieces"]


def test_copies_on_two_streams_at_once_are_as_fast_as_both_together(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [27.5] * 3)
    [alone] = lanes(read_back(copies(builder, 0, [27.5] * 3, stream=14), tmp_path))
    assert (alone.rate, alone.verdict) == (pytest.approx(55.0), "full_rate")


def test_migrations_of_unified_memory_are_traffic(tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.0, 55.0, 30.0, 30.0, 30.0])
    for at in range(3, 6):
        builder.migration(at * MS, at * MS + MS, "h2d", 20 * MS)
    both = lane(lanes(read_back(builder, tmp_path)), "h2d", "migrations in")
    assert (both.shared_lane, both.verdict, both.mover) == (True, "inbound_contention", "copy engine")


def with_facts(trace: Trace, gpu_node: int | None, pages: dict[str, int]) -> Trace:
    facts = {
        "devices": [{"id": 0, "gpu_numa_node": gpu_node, "pcie_generation": 5, "pcie_width": 16}],
        "host_buffers": [{"name": "pool", "pinned": True, "pages_by_node": pages}],
    }
    return replace(trace, capture=replace(trace.capture, facts=facts))


@pytest.mark.parametrize(
    ("pages", "links"),
    [
        ({"0": 100}, ("DRAM[0] out", "RC[0] down", "GPU 0 in")),
        ({"1": 100}, ("DRAM[1] out", "socket link 1 to 0", "RC[0] down", "GPU 0 in")),
        ({"0": 50, "1": 50}, ("DRAM[0] out", "RC[0] down", "GPU 0 in")),
    ],
)
def test_facts_tell_on_which_socket_the_pages_lie(
    pages: dict[str, int], links: tuple[str, ...], tmp_path: Path
) -> None:
    trace = with_facts(read_back(copies(TraceBuilder(), 0, [55.0] * 3), tmp_path), 0, pages)
    [found] = lanes(trace, None)
    assert (found.links, found.ceiling_from) == (links, "facts")
    assert found.ceiling == pytest.approx(63.015, abs=0.001)


def test_pageable_memory_is_copied_by_the_cpu_first(tmp_path: Path) -> None:
    [found] = lanes(read_back(copies(TraceBuilder(), 0, [8.0] * 3, memory="pageable"), tmp_path))
    assert (found.transfer_class, found.mover) == ("h2d pageable", "CPU, then copy engine")
    assert found.links[0] == "CPU copy"


def kernel_load(domain: str | None) -> TraceBuilder:
    """Return a forward of two layers, each loaded by a kernel of 1 ms in a range that says 27 MB."""
    builder = TraceBuilder().range("forward 0", 0, 100)
    for layer in range(2):
        at = 10 + 40 * layer
        builder.range(f"load layer {layer}", at, at + 12, domain=domain, int64Value=27 * MS)
        builder.kernel((2 + layer) * MS, (3 + layer) * MS, name="mover", stream=21, call=(at + 2, at + 4))
        builder.range(f"compute layer {layer}", at + 20, at + 30)
        builder.kernel((5 + layer) * MS, (6 + layer) * MS, call=(at + 22, at + 24))
    return builder


def test_a_kernel_that_loads_has_the_bytes_that_its_range_says(tmp_path: Path) -> None:
    [found] = lanes(read_back(kernel_load("traceview"), tmp_path))
    assert (found.transfer_class, found.mover, found.n_bytes) == ("h2d by SMs", "SMs", 54 * MS)
    assert (found.rate, found.verdict) == (pytest.approx(27.0), "low_rate")


def test_the_payload_of_another_domain_may_mean_anything(tmp_path: Path) -> None:
    trace = read_back(kernel_load(None), tmp_path)
    [found] = lanes(trace)
    assert (found.n_bytes, found.rate, found.verdict) == (None, None, "unknown")
    traffic = find_traffic(trace, find_forwards(trace), PCIE_5)
    assert "bytes and rate of loading kernels" in [one.measure for one in abstentions(trace, (), PCIE_5, traffic)]


def rdma(builder: TraceBuilder) -> TraceBuilder:
    samples = [(at * MS, (at + 1) * MS, 30 * MS if at >= 3 else 10) for at in range(6)]
    return nic_samples(builder, "IB: Bytes received", samples)


def test_rdma_into_the_nearest_gpu_shares_its_link(tmp_path: Path) -> None:
    builder = copies(TraceBuilder("3.25.0"), 0, [55.0, 55.0, 55.0, 30.0, 30.0, 30.0])
    copies(builder, 0, [55.0] * 6, device=1, context=2, stream=33)
    found = lanes(read_back(rdma(builder), tmp_path), topology("NV18"))
    both = lane(found, "h2d", "rdma in")
    assert (both.shared_lane, both.verdict) == (True, "inbound_contention")
    assert lane(found, "rdma in").n_bytes == 90 * MS
    assert [one.device for one in found if one.transfer_class == "rdma in" and one.beside is None] == [0]


def test_without_a_topology_rdma_may_reach_any_gpu(tmp_path: Path) -> None:
    builder = copies(TraceBuilder("3.25.0"), 0, [55.0] * 6)
    trace = read_back(rdma(copies(builder, 0, [55.0] * 6, device=1, context=2, stream=33)), tmp_path)
    traffic = find_traffic(trace, (), PCIE_5)
    assert sorted(one.place[1] for one in traffic if one.transfers.nic) == [0, 1]
    assert "GPUs that RDMA traffic reaches" in [one.measure for one in abstentions(trace, (), PCIE_5, traffic)]


@pytest.mark.parametrize(("rate", "verdict"), [(55.0, "no_conflict"), (40.0, "slowed_elsewhere")])
def test_reading_from_storage_shares_host_memory_only(rate: float, verdict: str, tmp_path: Path) -> None:
    builder = copies(TraceBuilder(), 0, [55.0, 55.0, 55.0, rate, rate, rate])
    for name, at in (("storage read", 3), ("stage", 10)):
        builder.range(name, at * MS, (at + 3) * MS, domain="traceview", int64Value=6 * MS)
    found = lanes(read_back(builder, tmp_path))
    both = lane(found, "h2d", "storage read")
    assert (both.shared_lane, both.verdict, both.slowdown) == (False, verdict, pytest.approx(1 - rate / 55))
    reading = lane(found, "storage read")
    assert (reading.direction, reading.n_bytes, reading.rate) == ("host", 6 * MS, pytest.approx(2.0))
    assert reading.links == ("storage out", "DRAM in")
    assert lane(found, "stage").links == ("DRAM out", "DRAM in")
