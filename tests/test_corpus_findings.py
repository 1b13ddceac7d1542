"""Findings over every capture of the corpus: the planted cause first, silence on healthy runs, all explained."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import traceview
from traceview.analysis.accounting import account
from traceview.analysis.forwards import Forward, ForwardOptions, find_forwards
from traceview.analysis.naming import NOTHING, RangeNames
from traceview.analysis.report import build_report
from traceview.model import Trace

CORPUS = os.environ.get("TRACEVIEW_CORPUS")
FILES = {path.stem: path for path in sorted(Path(CORPUS).rglob("*.sqlite"))} if CORPUS else {}

pytestmark = pytest.mark.skipif(not FILES, reason="TRACEVIEW_CORPUS names no folder with captures")

PLANTED = {
    "ideal": [],
    "graph": [],
    "pageable": [{"pageable_source"}],
    "fragmented": [{"late_submission", "fragmented_copies"}],
    "item": [{"scalar_readback"}],
    "item_callstacks": [{"scalar_readback"}],
    "offload": [{"pageable_source", "same_stream"}, {"pageable_source", "same_stream"}],
    "sglang_hicache_direct_fragmented": [{"late_submission", "fragmented_copies"}],
    "sglang_hicache_kernel": [{"sm_mover_contention", "load_bound"}, {"sm_mover_contention", "load_bound"}],
}
"""What the first findings may be; an empty list means that there is none at all."""

DEFENSIBLE = {
    "hf_offloaded_cache_stacks": {
        "host_bound": "between passes the host is busy for some 50 ms while the first prefetch is long done",
        "implicit_sync": "cudaHostAlloc pins a buffer of 64 MiB for evicted layers again and again inside the loop",
        "same_stream": "evictions run device-to-host on the compute stream, so that compute queues behind them",
        "load_bound": "34 ms of prefetch per pass stand against 2.7 ms of compute: the link is the limit",
    },
    "p2p": {"duplex_slowdown": "a concurrent device-to-host copy takes host-to-device from 55 to 50 GB/s"},
    "balinski-gomory_report11": {},
    "balinski-gomory_report19": {
        "implicit_sync": "3,830 synchronous device-to-host copies of 4 bytes, none of them under a kernel",
    },
    "flameox_nsight-2025.5.2": {},
    "nsys-ai_h100_2gpu_1s": {
        "same_stream": "25.5 GB of pinned host-to-device copies per GPU on the compute stream, none under compute",
    },
    "nsys-ai_mfu_2gpu_after": {},
    "nsys-ai_mfu_2gpu_before": {},
    "pipit_saxpy_mpi": {
        "pageable_source": "cudaMemcpy of 2.4 GiB from malloc'ed memory, none of it under a kernel",
        "implicit_sync": "cudaMemcpy of 1.2 GiB back to the host blocks until it is done",
    },
    "test-cuda_report2": {},
}
"""Findings that a reader of the capture would agree with, and why."""


@pytest.mark.parametrize("name", sorted(PLANTED))
def test_planted_cause_comes_first(name: str) -> None:
    if name not in FILES:
        pytest.skip("not in this corpus")
    found = [finding.id for finding in build_report(traceview.read(FILES[name])).findings]
    expected = PLANTED[name]
    assert len(found) >= len(expected)
    assert all(one in allowed for one, allowed in zip(found, expected, strict=False))
    assert expected or found == []


@pytest.mark.parametrize("name", sorted(FILES.keys() - PLANTED.keys()))
def test_every_other_finding_is_explained(name: str) -> None:
    assert name in DEFENSIBLE, "look at this capture, judge its findings by hand and write down why they are right"
    found = {finding.id for finding in build_report(traceview.read(FILES[name])).findings}
    assert found <= DEFENSIBLE[name].keys()


@pytest.mark.parametrize("name", sorted(FILES))
def test_costs_never_exceed_the_loss(name: str) -> None:
    report = build_report(traceview.read(FILES[name]))
    if report.summary is None:
        pytest.skip("no forward: costs are geometric")
    measures = report.summary.measures
    inflation = max(measures.compute_inflation_ns or 0, 0)
    loss = measures.makespan_ns - measures.compute_busy_ns + inflation
    # medians of parts need not add up to the median of the whole; 5 % covers how forwards vary here
    assert sum(finding.cost_ns for finding in report.findings) <= 1.05 * loss


NAMELESS = RangeNames(NOTHING, NOTHING, NOTHING)
BY_EVENTS = [ForwardOptions(layers_from="events"), ForwardOptions(names=NAMELESS)]


@pytest.mark.parametrize("options", BY_EVENTS, ids=["forwards-named", "nothing-named"])
@pytest.mark.parametrize("name", ["ideal", "item", "pageable", "fragmented", "graph"])
def test_events_find_the_layers_that_names_tell(name: str, options: ForwardOptions) -> None:
    trace = traceview.read(FILES[name])
    named, found = find_forwards(trace), find_forwards(trace, options)
    assert [layer_count(forward) for forward in found] == [8] * 5
    assert {forward.layers_from for forward in found} == {"events"}
    assert makespans(trace, found) == pytest.approx(makespans(trace, named), rel=0.02)


def test_events_find_the_passes_of_an_offloaded_cache() -> None:
    trace = traceview.read(FILES["hf_offloaded_cache_stacks"])
    second = [row for row in range(len(trace.ranges)) if trace.names[trace.ranges.name[row]] == "generate"][1]
    begin, end = trace.ranges.start[second], trace.ranges.end[second]
    passes = [forward for forward in find_forwards(trace) if begin <= forward.end <= end]
    assert [layer_count(forward) for forward in passes] == [12] * 8


@pytest.mark.parametrize("name", ["sglang_hicache_kernel", "sglang_hicache_direct_fragmented"])
def test_events_find_the_forwards_of_sglang(name: str) -> None:
    forwards = find_forwards(traceview.read(FILES[name]))
    assert [layer_count(forward) for forward in forwards] == [16] * 5


def test_names_and_events_mix() -> None:
    report = build_report(traceview.read(FILES["sglang_hicache_direct_fragmented"]))
    named = [forward for forward in report.forwards if forward.name.startswith("forward")]
    assert {forward.layers_from for forward in named} == {"nvtx+events"}
    for forward in named:
        assert 35e6 < (forward.measures.first_layer_exposed_ns or 0) < 39e6
        assert 4_000 < (forward.measures.load_pieces or 0) <= 4_096


def layer_count(forward: Forward) -> int:
    return len({layer for layer in forward.layer.tolist() if layer >= 0})


def makespans(trace: Trace, forwards: tuple[Forward, ...]) -> list[int]:
    return [account(trace, forward).makespan_ns for forward in forwards]
