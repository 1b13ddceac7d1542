"""What rows of a capture do not say is told, and a load that a capture does not show is no load of 0 bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.report import build_report
from traceview.render.text import render

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.report import Report

TIMES = {"loads": [[(100, 200)], [(200, 300)]], "computes": [[(200, 250)], [(300, 400)]]}


def report(builder: TraceBuilder, tmp_path: Path) -> Report:
    return build_report(read_back(builder, tmp_path))


def reason(made: Report, measure: str) -> str | None:
    return next((one.reason for one in made.abstained if one.measure.startswith(measure)), None)


def compute_alone() -> TraceBuilder:
    return TraceBuilder().range("forward 0", 0, 90).range("compute layer 0", 5, 50).kernel(60, 80, call=(10, 20))


def test_a_whole_capture_has_no_gap(tmp_path: Path) -> None:
    made = report(layered_forward(TraceBuilder(), start=0, **TIMES), tmp_path)
    assert reason(made, "loads: ") is None
    assert not [one for one in made.abstained if one.measure.startswith("names")]


@pytest.mark.parametrize("builder", [compute_alone(), compute_alone().copy(30, 70)], ids=["no copies", "no launch"])
def test_loads_that_the_capture_does_not_show_are_unknown(builder: TraceBuilder, tmp_path: Path) -> None:
    made = report(builder, tmp_path)
    measures, [layer] = made.forwards[0].measures, made.forwards[0].layers
    assert (measures.load_busy_ns, measures.overlap_ns, measures.load_pieces, measures.load_bytes) == (None,) * 4
    assert (layer.load_busy_ns, layer.load_pieces, layer.load_bytes) == (None,) * 3
    assert reason(made, "loads: ")
    assert "nothing can be said of its loads" in render(made)


@pytest.mark.parametrize(
    "copy", [{"direction": "d2h"}, {"start": 500, "end": 600}, {"device": 1}], ids=["other way", "later", "elsewhere"]
)
def test_other_copies_without_launch_leave_no_load_a_fact(copy: dict, tmp_path: Path) -> None:
    made = report(compute_alone().copy(**{"start": 30, "end": 70} | copy), tmp_path)
    assert made.forwards[0].measures.load_busy_ns == 0
    assert reason(made, "loads: ") is None


def test_what_has_no_name_is_counted(tmp_path: Path) -> None:
    builder = compute_alone().range("", 1, 2).kernel(100, 110, demangledName=777)
    builder.row("CUPTI_ACTIVITY_KIND_RUNTIME", start=3, end=4, nameId=778, globalTid=1)
    made = report(builder, tmp_path)
    assert reason(made, "names of kernels") == "1 of 2 have none in this export"
    assert reason(made, "names of API calls") == "1 of 2 have none in this export"
    assert reason(made, "names of ranges") == "1 of 3 have none in this export"


def test_stacks_of_nobody_are_told(tmp_path: Path) -> None:
    builder = compute_alone().api("cudaFree", 1, 2).stack(5, [("main", "app")])
    assert "none of the call stacks" in (reason(report(builder, tmp_path), "where blocking calls") or "")
