"""Findings: the cause of lost time, its cost, and silence where nothing is wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.case import Thresholds
from traceview.analysis.report import ReportOptions, build_report
from traceview.report import Finding

US = 1_000
MIB = 1 << 20
COMPUTE, LOAD = 7, 13


def forward(
    builder: TraceBuilder,
    at: int,
    number: int,
    *,
    load_us: int = 100,
    compute_us: int = 110,
    layers: int = 4,
    load_stream: int = LOAD,
    memory: str = "pinned",
) -> None:
    """Write a forward whose host runs ahead: all loads are submitted at once, each layer computes when it can."""
    call = at
    loaded = computed = at + 20 * US
    done = []
    for layer in range(layers):
        begin = max(loaded, computed) if load_stream == COMPUTE else loaded
        loaded = begin + load_us * US
        builder.copy(begin, loaded, "h2d", 4 * MIB, stream=load_stream, memory=memory, call=(call + 10, call + 20))
        builder.range(f"load layer {layer}", call, call + 30)
        call += 40
        done.append(loaded)
        if load_stream == COMPUTE:
            computed = compute(builder, call, layer, max(computed, loaded), compute_us)
            call += 40
    if load_stream != COMPUTE:
        for layer in range(layers):
            computed = compute(builder, call, layer, max(computed, done[layer]), compute_us)
            call += 40
    builder.stream_sync(stream=COMPUTE, call=(call, computed + US))
    builder.range(f"forward {number}", at - 10, computed + 2 * US)


def compute(builder: TraceBuilder, call: int, layer: int, begin: int, length_us: int) -> int:
    builder.kernel(begin, begin + length_us * US, stream=COMPUTE, call=(call + 10, call + 20))
    builder.range(f"compute layer {layer}", call, call + 30)
    return begin + length_us * US


def findings(builder: TraceBuilder, folder: Path, **thresholds: float) -> list[Finding]:
    options = ReportOptions(thresholds=replace(Thresholds(), **thresholds))
    return list(build_report(read_back(builder, folder), options).findings)


def three(**options: object) -> TraceBuilder:
    builder = TraceBuilder()
    for number in (-1, 0, 1):
        forward(builder, (number + 2) * 10_000 * US, number, **options)  # type: ignore[arg-type]
    return builder


def test_a_hidden_load_is_no_finding(tmp_path: Path) -> None:
    assert findings(three(), tmp_path) == []


def test_loads_longer_than_compute_are_bound_by_the_link(tmp_path: Path) -> None:
    [found] = findings(three(load_us=200, compute_us=100), tmp_path)
    assert (found.id, found.severity, found.basis) == ("load_bound", "medium", "accounting")
    # makespan 900 us; without the link's limit the first load and all compute: 200 + 4 * 100
    assert found.cost_ns == 300 * US
    assert found.share == pytest.approx(1 / 3)


def test_loads_on_the_compute_stream_cost_what_they_could_hide(tmp_path: Path) -> None:
    [found] = findings(three(load_stream=COMPUTE), tmp_path)
    assert found.id == "same_stream"
    # serial 4 * (100 + 110) against ideal 100 + 4 * 110
    assert found.cost_ns == 300 * US
    assert found.severity == "high"


def test_a_scalar_read_back_costs_its_wait_and_restart(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in (-1, 0):
        at = (number + 2) * 10_000 * US
        builder.copy(at, at + 100 * US, "h2d", 4 * MIB, stream=LOAD, call=(at - 50, at - 40))
        builder.range("load layer 0", at - 60, at - 30)
        builder.kernel(at + 100 * US, at + 200 * US, stream=COMPUTE, call=(at, at + 10))
        builder.copy(at + 200 * US, at + 201 * US, "d2h", 4, stream=COMPUTE, call=(at + 20, at + 30))
        builder.stream_sync(stream=COMPUTE, call=(at + 40, at + 210 * US))
        builder.range("compute layer 0", at - 10, at + 211 * US)
        builder.kernel(at + 300 * US, at + 400 * US, stream=COMPUTE, call=(at + 290 * US, at + 291 * US))
        builder.range("compute layer 1", at + 212 * US, at + 292 * US)
        builder.range(f"forward {number}", at - 100, at + 293 * US)
    [found] = findings(builder, tmp_path)
    assert found.id == "scalar_readback"
    # idle from 200 to 300 us; the first of it is the copy on the compute stream itself
    assert found.cost_ns == 99 * US
    assert any("1 call in" in text for text in found.evidence)


def test_a_blocking_call_that_costs_nothing_is_no_finding(tmp_path: Path) -> None:
    builder = three()
    for number in (-1, 0, 1):
        at = (number + 2) * 10_000 * US
        # free returns while 400 us of compute are still queued
        builder.api("cudaFree_v3020", at + 25 * US, at + 30 * US)
    assert findings(builder, tmp_path) == []


def test_pageable_loads_are_named_by_their_memory(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in (-1, 0):
        at = (number + 2) * 10_000 * US
        now = at
        for layer in range(2):
            builder.copy(now + 10, now + 500 * US, "h2d", 4 * MIB, memory="pageable", call=(now, now + 490 * US))
            builder.range(f"load layer {layer}", now - 5, now + 491 * US)
            now += 500 * US
        for layer in range(2):
            builder.kernel(now + 10 * US, now + 110 * US, stream=COMPUTE, call=(now, now + 10))
            builder.range(f"compute layer {layer}", now - 5, now + 15)
            now += 120 * US
        builder.range(f"forward {number}", at - 10, now)
    found = findings(builder, tmp_path)
    assert [one.id for one in found] == ["pageable_source"]
    # the second load's call blocks for 490 us; 20 us pass until the first kernel and 20 us before the second, for the
    # queue is not full before
    assert found[0].cost_ns == 530 * US


def test_thresholds_can_be_changed(tmp_path: Path) -> None:
    builder = three(load_us=200, compute_us=100)
    assert findings(builder, tmp_path, min_share=0.5) == []


def test_what_costs_nothing_is_no_finding_whatever_the_thresholds(tmp_path: Path) -> None:
    for least in (0.0, -1.0):
        assert all(one.cost_ns > 0 for one in findings(three(), tmp_path, min_share=least, min_cost_us=least))


def test_slow_loads_of_unknown_memory_are_not_called_bound_by_the_link(tmp_path: Path) -> None:
    """Loads from pageable memory look like that where an export tells no memory kinds."""
    builder = three(load_us=200, compute_us=100, memory="unknown")
    assert findings(builder, tmp_path) == []
    report = build_report(read_back(builder, tmp_path))
    assert "pinned or pageable source" in [one.measure for one in report.abstained]


def test_costs_of_warm_up_do_not_count(tmp_path: Path) -> None:
    builder = TraceBuilder()
    forward(builder, 10_000 * US, -1, load_us=500)
    forward(builder, 20_000 * US, 0)
    assert findings(builder, tmp_path) == []


def test_without_a_forward_costs_are_geometric(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for step in range(4):
        at = step * 1_000 * US
        builder.copy(at, at + 500 * US, "h2d", 16 * MIB, stream=COMPUTE, call=(at, at + 10))
        builder.kernel(at + 500 * US, at + 600 * US, stream=COMPUTE, call=(at + 20, at + 30))
    [found] = findings(builder, tmp_path)
    assert (found.id, found.basis, found.cost_ns) == ("same_stream", "geometric", 2_000 * US)


def test_copies_spread_over_many_streams_are_a_pipeline(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for stream in range(4):
        at = stream * 600 * US
        builder.copy(at, at + 500 * US, "h2d", 16 * MIB, stream=20 + stream, call=(at, at + 10))
        builder.kernel(at + 500 * US, at + 600 * US, stream=20 + stream, call=(at + 20, at + 30))
    assert findings(builder, tmp_path) == []
