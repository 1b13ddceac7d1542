"""What a GPU's own pace changes between two captures is no change of the program; what anything else changes is."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from noisy_traces import Noise, noisy_trace
from trace_builder import TraceBuilder

from traceview.analysis.compare import REGRESSED, SAME, Comparison, compare
from traceview.analysis.compare_clocks import pace_change, paces_of
from traceview.analysis.compare_sides import Captured, gather_sides
from traceview.analysis.forwards import ForwardOptions
from traceview.analysis.report import ReportOptions, build_report
from traceview.model import Trace
from traceview.reading import read

SAMPLES = Path(__file__).parents[2] / "sample_traces"


def captured(trace: Trace, selected: tuple[int | None, int | None] | None = None) -> Captured:
    return Captured(trace, build_report(trace, ReportOptions(ForwardOptions(selected=selected))))


def compared(base: Path, new: Path) -> Comparison:
    return compare(*gather_sides([captured(read(base))], [captured(read(new))]))


def test_a_few_forwards_of_a_run_whose_clocks_wander_are_the_same_as_any_others_of_it() -> None:
    """Forwards that follow each other share a pace: four of them hardly scatter, and the next four lie 10 % apart."""
    trace = read(SAMPLES / "healthy_40.sqlite")
    slices = [captured(trace, (first, first + 4)) for first in range(2, 42, 4)]
    assert all(sum(not forward.warmup for forward in one.report.forwards) == 4 for one in slices)
    verdicts = [compare(*gather_sides([one], [other])).verdict for one, other in combinations(slices, 2)]
    assert verdicts.count(SAME) == len(verdicts) == 45


@pytest.mark.parametrize(("slower", "verdict"), [(1.1, SAME), (1.3, REGRESSED)])
def test_compute_that_is_slower_by_more_than_clocks_can_be_counts(slower: float, verdict: str, tmp_path: Path) -> None:
    base = noisy_trace(tmp_path / "base.sqlite", 1, forwards=5)
    new = noisy_trace(tmp_path / "new.sqlite", 2, forwards=5, noise=Noise(compute_ns=1_290_000 * slower))
    comparison = compared(base, new)
    rows = {row.measure: row.verdict for row in comparison.rows if not row.subject}
    assert (rows["compute_busy_ns"], rows["makespan_ns"], comparison.verdict) == (verdict, verdict, verdict)
    assert any("the same kernels take" in remark for remark in comparison.remarks)
    assert any("is not counted" in remark for remark in comparison.remarks) == (verdict == SAME)


def test_a_load_that_is_slower_counts_whatever_the_clocks_do(tmp_path: Path) -> None:
    base = noisy_trace(tmp_path / "base.sqlite", 3, forwards=5)
    noise = Noise(compute_ns=1_290_000 * 1.1)
    new = noisy_trace(tmp_path / "new.sqlite", 4, forwards=5, noise=noise, slower={2: 1.1})
    comparison = compared(base, new)
    changed = {(row.measure, row.subject) for row in comparison.rows if row.counts and row.verdict != SAME}
    assert changed == {("layer_load_busy_ns", "layer 2")}


def test_the_pace_is_that_of_most_of_the_work_moving_alike() -> None:
    base = {("a", 0): (800.0, 100.0), ("b", 0): (200.0, 50.0)}
    assert pace_change(base, {("a", 0): (880.0, 110.0), ("b", 0): (220.0, 55.0)}) == pytest.approx(0.1)
    assert pace_change(base, {("a", 0): (720.0, 90.0), ("b", 0): (180.0, 45.0)}) == pytest.approx(-0.1)
    assert pace_change(base, {("a", 0): (880.0, 110.0), ("b", 0): (180.0, 45.0)}) == 0, "they do not move alike"
    assert pace_change(base, {("a", 0): (1200.0, 150.0), ("b", 0): (300.0, 75.0)}) == 0, "more than clocks can"
    assert pace_change(base, {("b", 0): (220.0, 55.0), ("c", 0): (880.0, 110.0)}) == 0, "hardly the same work"
    assert pace_change(base, {("a", 1): (880.0, 110.0), ("b", 0): (220.0, 55.0)}) == 0, "another launch shape"
    assert pace_change(base, {}) == pace_change({}, base) == 0


def test_kernels_that_others_slow_down_say_nothing_of_the_pace(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 100_000).range("forward 1", 200_000, 300_000)
    for start in (0, 200_000):
        for place, call in ((1_000, 10), (20_000, 30)):
            builder.kernel(start + place, start + place + 10_000, name="work", call=(start + call, start + call + 5))
        builder.kernel(start + 25_000, start + 29_000, name="mover", stream=8, call=(start + 50, start + 55))
    one = captured(read(builder.write(tmp_path / "a.sqlite")))
    paces = paces_of([(one.trace, one.report.forwards)])
    assert {name: times for (name, _), times in paces[0].items()} == {"work": (10_000.0, 10_000.0)}
