"""Replays: exact without edits, and what edits change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trace_builder import TraceBuilder

import traceview
from traceview.analysis.accounting import account
from traceview.analysis.forwards import find_forwards
from traceview.analysis.replay import build_graph, makespan
from traceview.analysis.report import ReportOptions, build_report
from traceview.errors import UsageError
from traceview.report import WhatIf

SAMPLES = Path(__file__).parents[2] / "sample_traces"
CORPUS = os.environ.get("TRACEVIEW_CORPUS")
TRACES = sorted(SAMPLES.glob("*.sqlite")) + (sorted(Path(CORPUS).rglob("*.sqlite")) if CORPUS else [])


def predicted(path: Path, *edits: str) -> tuple[WhatIf, ...]:
    return build_report(traceview.read(path), ReportOptions(what_if=edits)).what_if


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.stem)
def test_replay_without_edits_is_exact(path: Path) -> None:
    trace = traceview.read(path)
    for forward in find_forwards(trace):
        assert makespan(build_graph(trace, forward)) == account(trace, forward).makespan_ns


PAIRS = [
    ("item", "no-sync", "healthy"),
    ("pageable", "pin", "registered"),
    ("fragmented", "coalesce", "contiguous"),
    ("same_stream", "own-stream", "registered"),
    ("device_sync", "no-sync", "registered"),
    ("alloc_free", "no-sync", "registered"),
]
"""A fault, the edit that mends it, and the run of the same size without it."""


@pytest.mark.parametrize(("fault", "edit", "healthy"), PAIRS, ids=lambda name: name)
def test_mended_fault_takes_what_the_healthy_run_takes(fault: str, edit: str, healthy: str) -> None:
    [found] = predicted(SAMPLES / f"{fault}.sqlite", edit)
    summary = build_report(traceview.read(SAMPLES / f"{healthy}.sqlite")).summary
    assert summary is not None
    assert found.predicted_ns == pytest.approx(summary.measures.makespan_ns, rel=0.1)
    assert found.predicted_ns < 0.98 * found.makespan_ns


def test_edits_change_nothing_in_a_healthy_run() -> None:
    for found in predicted(SAMPLES / "healthy.sqlite", "coalesce", "pin", "no-sync", "own-stream"):
        assert found.predicted_ns == found.makespan_ns


def test_each_edit_is_predicted_alone_and_then_all_together() -> None:
    found = predicted(SAMPLES / "item.sqlite", "pin", "no-sync")
    assert [entry.edits for entry in found] == [("pin",), ("no-sync",), ("pin", "no-sync")]


def test_unknown_edit_lists_the_known() -> None:
    with pytest.raises(UsageError, match="faster") as refused:
        predicted(SAMPLES / "healthy.sqlite", "faster")
    assert "coalesce, pin, no-sync, own-stream" in refused.value.hint


def test_an_edit_that_changes_no_rate_needs_none(tmp_path: Path) -> None:
    """Loads of 4 MiB tell no rate of the link: coalescing stays unknown, pinning what is pinned changes nothing."""
    builder = TraceBuilder()
    for number in (-1, 0):
        at = (number + 2) * 10_000_000
        for piece in range(2):
            begin = at + piece * 200_000
            builder.copy(begin, begin + 100_000, "h2d", 4 << 20, stream=13, call=(begin - 50, begin - 40))
        builder.range("load layer 0", at - 60, at + 199_999)
        builder.kernel(at + 300_000, at + 400_000, stream=7, call=(at + 250_000, at + 250_010))
        builder.range("compute layer 0", at + 240_000, at + 260_000)
        builder.range(f"forward {number}", at - 100, at + 500_000)
    found = {entry.edits: entry for entry in predicted(builder.write(tmp_path / "trace.sqlite"), "coalesce", "pin")}
    assert found[("pin",)].predicted_ns == found[("pin",)].makespan_ns == 400_000
    assert found[("coalesce",)].predicted_ns is None
    assert "--pcie 5x16" in str(found[("coalesce",)].reason)
    assert found[("coalesce", "pin")].predicted_ns is None


def test_an_edit_given_twice_counts_once() -> None:
    assert [entry.edits for entry in predicted(SAMPLES / "item.sqlite", "no-sync", "no-sync")] == [("no-sync",)]


def test_without_a_forward_the_prediction_is_abstained_from(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 1_000_000, "h2d", 64 << 20, stream=13)
    report = build_report(traceview.read(builder.write(tmp_path / "trace.sqlite")), ReportOptions(what_if=("pin",)))
    assert report.what_if == ()
    assert [(one.reason[:20], one.fix[:4]) for one in report.abstained if one.measure == "what if"] == [
        ("no forward was found", "name")
    ]
