"""Replays: exact without edits, and what edits change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
