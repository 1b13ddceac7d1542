"""Timelines: rows, boxes and holes of a forward, and what is left of them when there are too many."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from drawn_scenes import eight_layers, many_operations
from hypothesis import given
from hypothesis import strategies as st
from trace_builder import TraceBuilder

from traceview.analysis.drawings import collect_drawings, median_timeline
from traceview.analysis.report import ReportOptions, build_report
from traceview.analysis.timeline import Boxes, RowKind, TimedHoles, What, worst_and_median
from traceview.analysis.timeline_merge import merge_boxes, merge_holes
from traceview.analysis.timeline_pair import under_each_other
from traceview.analysis.timelines import forward_timelines, trace_timeline
from traceview.reading import read
from traceview.render.verdict import measured_forwards, median_forward
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from traceview.analysis.timeline import Timeline

SAMPLES = Path(__file__).parents[2] / "sample_traces"
US = 1_000


def timelines_of(path: Path) -> tuple[Timeline, ...]:
    trace = read(path)
    return collect_drawings(trace, ReportOptions().forwards, build_report(trace)).timelines


def causes(drawn: Timeline, category: str) -> set[str | None]:
    own = drawn.holes.take(drawn.holes.category == CATEGORIES.index(category))
    return {drawn.names[cause] if cause >= 0 else None for cause in own.cause.tolist()}


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.sqlite")), ids=lambda path: path.stem)
def test_holes_sum_up_to_the_accounting_to_the_nanosecond(sample: Path) -> None:
    for drawn in timelines_of(sample):
        if drawn.forward is None:
            continue
        spent = dict.fromkeys(CATEGORIES[1:], 0)
        for category, ns in zip(drawn.holes.category.tolist(), drawn.holes.spent.tolist(), strict=True):
            spent[CATEGORIES[category]] += ns
        assert spent == {name: drawn.forward.measures.accounting[name] for name in CATEGORIES[1:]}


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.sqlite")), ids=lambda path: path.stem)
def test_the_median_is_the_one_that_the_verdict_speaks_of(sample: Path) -> None:
    made = build_report(read(sample))
    chosen = worst_and_median(made.forwards)
    median = median_forward(measured_forwards(made))
    assert (chosen[-1][1] if chosen else None) == median
    if chosen:
        longest = max(forward.measures.makespan_ns for forward in measured_forwards(made))
        assert chosen[0][1].measures.makespan_ns == longest


def test_rows_go_from_the_host_to_loads_to_compute(tmp_path: Path) -> None:
    (drawn,) = timelines_of(eight_layers(tmp_path / "eight.sqlite"))
    assert [row.kind for row in drawn.rows] == [RowKind.RANGES, RowKind.HOST, RowKind.LOAD, RowKind.COMPUTE]
    assert [row.label for row in drawn.rows] == ["ranges", "host thread", "load, stream 13", "compute, stream 7"]
    blocking = drawn.boxes.take(drawn.boxes.what == What.BLOCKING)
    assert {drawn.names[name] for name in blocking.name.tolist()} == {"cudaStreamSynchronize"}
    loads = drawn.boxes.take(drawn.boxes.what == What.LOAD)
    assert loads.layer.tolist() == list(range(8))
    assert loads.n_bytes.tolist() == [64 << 20] * 8
    assert (loads.queued > 0).all()
    assert {drawn.names[name] for name in loads.name.tolist()} == {"h2d pinned copy"}


def test_a_hole_names_what_it_waited_for(tmp_path: Path) -> None:
    (drawn,) = timelines_of(eight_layers(tmp_path / "eight.sqlite"))
    assert causes(drawn, "sync") == {"cudaStreamSynchronize"}
    assert causes(drawn, "stream_queue") == {"d2h pinned copy"}
    assert causes(drawn, "host") == {f"compute layer {layer}" for layer in range(7)}
    assert causes(drawn, "load_copy") == {None}
    first = drawn.holes.take(drawn.holes.category == CATEGORIES.index("load_copy"))
    assert first.layer.tolist() == [0]


def test_an_arrow_leads_from_each_load_to_the_compute_that_waited_for_it(tmp_path: Path) -> None:
    (drawn,) = timelines_of(eight_layers(tmp_path / "eight.sqlite"))
    boxes = drawn.boxes
    ends = boxes.end[boxes.what == What.LOAD].tolist()
    computes = boxes.take(boxes.what == What.COMPUTE)
    first = [int(computes.start[computes.layer == layer].min()) for layer in range(8)]
    assert list(zip(drawn.arrows.from_time.tolist(), drawn.arrows.to_time.tolist(), strict=True)) == list(
        zip(ends, first, strict=True)
    )
    assert set(drawn.arrows.from_row.tolist()) == {2}
    assert set(drawn.arrows.to_row.tolist()) == {3}


def test_work_of_others_at_the_same_time_is_shown_as_such(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.copy(100, 300, stream=13, call=(20, 30)).kernel(310, 500, stream=7, call=(40, 50))
    builder.range("load layer 0", 15, 35).range("compute layer 0", 36, 60).range("forward 0", 10, 70)
    builder.kernel(200, 400, stream=9, call=(80, 90))
    (drawn,) = timelines_of(builder.write(tmp_path / "others.sqlite"))
    foreign = drawn.boxes.take(drawn.boxes.what == What.FOREIGN)
    assert (foreign.start.tolist(), foreign.end.tolist()) == ([200], [400])
    assert drawn.rows[int(foreign.row[0])].kind is RowKind.OTHER


def test_without_forwards_the_whole_trace_is_drawn(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(10, 50, stream=13, call=(1, 2)).kernel(60, 90, call=(3, 4))
    trace = read(builder.write(tmp_path / "plain.sqlite"))
    drawn = median_timeline(trace, ReportOptions().forwards, build_report(trace))
    assert drawn is not None
    assert drawn.forward is None
    assert (drawn.start_ns, drawn.end_ns, drawn.zero_ns) == (10, 90, 10)
    assert len(drawn.holes) == 0


def test_a_trace_without_operations_has_no_timeline(tmp_path: Path) -> None:
    trace = read(TraceBuilder().api("cudaMalloc", 1, 5).write(tmp_path / "none.sqlite"))
    assert trace_timeline(trace) is None
    assert forward_timelines(trace, ReportOptions().forwards, ()) == ()


def test_two_forwards_stand_under_each_other_from_zero(tmp_path: Path) -> None:
    (base,) = timelines_of(eight_layers(tmp_path / "base.sqlite"))
    (new,) = timelines_of(eight_layers(tmp_path / "new.sqlite", read_back=False))
    both = under_each_other(base, new)
    assert [row.label for row in both.rows][:: len(base.rows)] == ["base: ranges", "new: ranges"]
    first = [int(both.boxes.start[(both.boxes.row == row) & (both.boxes.what == What.LOAD)].min()) for row in (2, 6)]
    assert first == [0, 0]
    assert len(both.boxes) == len(base.boxes) + len(new.boxes)
    own = both.boxes.take(both.boxes.row >= len(base.rows))
    named = {both.names[name] for name in own.name.tolist()}
    assert named == {new.names[name] for name in new.boxes.name.tolist()}


def test_100_000_operations_stay_below_the_limit_and_lose_nothing(tmp_path: Path) -> None:
    (drawn,) = timelines_of(many_operations(tmp_path / "many.sqlite", 20_000))
    small = merge_boxes(drawn.boxes, 1_000)
    assert 500 < len(small) <= 1_000
    for column in ("count", "n_bytes", "busy"):
        assert getattr(small, column).sum() == getattr(drawn.boxes, column).sum()


@st.composite
def boxes(draw: st.DrawFn) -> Boxes:
    rows = sorted(draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), min_size=1, max_size=60)))
    size = len(rows)
    numbers = {entry.name: draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)) for entry in fields(Boxes)}
    columns = {name: np.array(values, dtype=np.int64) for name, values in numbers.items()}
    columns["row"], columns["start"] = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    columns["end"] = columns["start"] + columns["end"]
    return Boxes(**columns)


@given(boxes(), st.integers(3, 40))
def test_merging_keeps_to_the_limit_and_to_every_sum(all_boxes: Boxes, most: int) -> None:
    merged = merge_boxes(all_boxes, most)
    assert len(merged) <= max(most, len(np.unique(all_boxes.row)))
    for column in ("count", "n_bytes", "busy"):
        assert getattr(merged, column).sum() == getattr(all_boxes, column).sum()
    for row in np.unique(all_boxes.row).tolist():
        assert merged.start[merged.row == row].min() == all_boxes.start[all_boxes.row == row].min()
        assert merged.end[merged.row == row].max() == all_boxes.end[all_boxes.row == row].max()


@given(boxes(), st.integers(12, 40))
def test_merged_holes_keep_what_each_category_cost(all_boxes: Boxes, most: int) -> None:
    columns = {entry.name: getattr(all_boxes, entry.name, all_boxes.what) for entry in fields(TimedHoles)}
    order = np.argsort(columns["start"], kind="stable")
    holes = TimedHoles(**{name: column[order] for name, column in columns.items()} | {"spent": all_boxes.busy[order]})
    merged = merge_holes(holes, most)
    assert len(merged) <= most
    for category in range(4):
        assert merged.spent[merged.category == category].sum() == holes.spent[holes.category == category].sum()
    assert (np.diff(merged.start) >= 0).all()
