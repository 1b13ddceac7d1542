"""A comparison tells what changed and what cannot be told; alike sides seldom differ, planted changes seldom hide."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from noisy_traces import Noise, noisy_trace
from trace_builder import TraceBuilder

from traceview.analysis.compare import CANNOT_TELL, IMPROVED, REGRESSED, SAME, Thresholds, compare, compare_samples
from traceview.analysis.compare_calls import repeated_range
from traceview.analysis.compare_measures import Key, Sample
from traceview.analysis.compare_setting import Setting
from traceview.analysis.compare_sides import Captured, gather_sides
from traceview.analysis.report import build_report
from traceview.reading import read
from traceview.report import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.compare import Comparison, Row

SAMPLES = Path(__file__).parents[2] / "sample_traces"
LONG_RUNS = [*sorted(SAMPLES.glob("healthy_40*.sqlite"))]
LAYER_3 = Key("layer_load_busy_ns", "layer 3")


def captured(path: Path) -> Captured:
    trace = read(path)
    return Captured(trace, build_report(trace))


def compared(base: Sequence[Path], new: Sequence[Path], thresholds: Thresholds | None = None) -> Comparison:
    sides = gather_sides([captured(path) for path in base], [captured(path) for path in new])
    return compare(*sides, thresholds)


def samples(path: Path) -> tuple[Sample, ...]:
    one = captured(path)
    return gather_sides([one], [one])[0].samples


def changed(rows: Sequence[Row]) -> set[tuple[str, str, str]]:
    return {(row.measure, row.subject, row.verdict) for row in rows if row.verdict in (IMPROVED, REGRESSED)}


def verdict_of(comparison: Comparison, measure: str, subject: str = "") -> str:
    return next(row.verdict for row in comparison.rows if (row.measure, row.subject) == (measure, subject))


def split(run: Sequence[Sample], generator: np.random.Generator) -> tuple[list[Sample], list[Sample]]:
    """Return a run's samples dealt at random to two sides of equal size, each in the order of time."""
    left = generator.permutation(len(run)) < len(run) // 2
    return [one for one, chosen in zip(run, left, strict=True) if chosen], [
        one for one, chosen in zip(run, left, strict=True) if not chosen
    ]


def slowed(run: Sequence[Sample], share: float) -> list[Sample]:
    """Return samples in which the load of layer 3 takes longer."""
    return [replace(one, values={**one.values, LAYER_3: one.values[LAYER_3] * (1 + share)}) for one in run]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Sample, ...]:
    return samples(noisy_trace(tmp_path_factory.mktemp("healthy") / "run.sqlite", seed=1))


# how often it errs


def false_alarms(run: Sequence[Sample], splits: int) -> int:
    generator = np.random.default_rng(2024)
    return sum(bool(changed(compare_samples(*split(run, generator)))) for _ in range(splits))


def found_slowdowns(run: Sequence[Sample], splits: int) -> int:
    generator = np.random.default_rng(4)
    found = 0
    for _ in range(splits):
        base, new = split(run, generator)
        found += (*LAYER_3, REGRESSED) in changed(compare_samples(base, slowed(new, 0.05)))
    return found


def test_random_splits_of_a_healthy_run_seldom_show_any_change(healthy: tuple[Sample, ...]) -> None:
    assert len(healthy) == 40
    assert false_alarms(healthy, 60) <= 3


def test_a_run_so_noisy_that_the_smallest_effect_excuses_nothing_still_seldom_errs(tmp_path: Path) -> None:
    loud = Noise(load_scatter=0.04, compute_scatter=0.05, compute_drift=0.0, wake_ns=300_000)
    assert false_alarms(samples(noisy_trace(tmp_path / "loud.sqlite", seed=3, noise=loud)), 40) <= 2


@pytest.mark.slow
@pytest.mark.parametrize("path", LONG_RUNS, ids=lambda path: path.stem)
def test_of_200_random_splits_of_a_real_run_at_most_5_percent_show_any_change_and_a_slowdown_is_found(
    path: Path,
) -> None:
    """The real run's clocks drift by 15 % while it lasts."""
    run = samples(path)
    assert len(run) >= 40
    assert false_alarms(run, 200) <= 10
    assert found_slowdowns(run, 50) >= 45


def test_a_planted_slowdown_of_one_layers_load_is_found(tmp_path: Path) -> None:
    """20 forwards a side, the load of layer 3 longer by 5 %: it hides behind compute, so only the layer shows it."""
    found, trials = 0, 20
    for trial in range(trials):
        base = samples(noisy_trace(tmp_path / "base.sqlite", seed=100 + trial, forwards=20))
        new = samples(noisy_trace(tmp_path / "new.sqlite", seed=900 + trial, forwards=20, slower={3: 1.05}))
        rows = compare_samples(base, new)
        found += (*LAYER_3, REGRESSED) in changed(rows)
        assert changed(rows) <= {(*LAYER_3, REGRESSED)}
    assert found >= 0.9 * trials


# what it says of pairs


def test_two_halves_and_two_runs_of_a_healthy_program_are_the_same(tmp_path: Path, healthy: tuple[Sample, ...]) -> None:
    halves = compare_samples(healthy[:20], healthy[20:])
    assert {row.verdict for row in halves} == {SAME}
    paths = [noisy_trace(tmp_path / f"{seed}.sqlite", seed, forwards=4) for seed in (21, 22)]
    runs = compared(paths[:1], paths[1:])
    assert {row.verdict for row in runs.rows} == {SAME}
    assert runs.verdict == SAME


FAULTS = {
    "item": ("scalar_readback", {"accidental_calls"}),
    "pageable": ("pageable_source", {"implicit_sync", "first_layer_exposed_ns", "load_rate", "accidental_calls"}),
    "same_stream": ("same_stream", {"stream_queue", "overlap_ratio"}),
    "small_copy_first": ("head_of_line", {"engine_queue"}),
    "late_submission": ("late_submission", {"submit"}),
    "device_sync": ("accidental_sync", {"sync", "accidental_calls", "sync_cost_ns"}),
    "alloc_free": ("implicit_sync", {"implicit_sync", "accidental_calls", "sync_cost_ns"}),
}
"""Captures with the layers and bytes of the healthy one: the finding that names the fault, and where it must show."""


@pytest.mark.parametrize("name", [name for name in FAULTS if (SAMPLES / f"{name}.sqlite").is_file()])
def test_each_fault_regresses_where_it_should_is_named_and_goes_again(name: str) -> None:
    finding, measures = FAULTS[name]
    healthy, faulty = [SAMPLES / "healthy.sqlite"], [SAMPLES / f"{name}.sqlite"]
    comparison = compared(healthy, faulty)
    regressed = {row.measure for row in comparison.rows if row.verdict == REGRESSED}
    assert comparison.verdict == REGRESSED
    # seven read-backs cost 4 % here, and the makespans of three healthy forwards lie 6 % apart
    overall = {"pipeline_efficiency"} if name == "item" else {"makespan_ns", "pipeline_efficiency"}
    assert regressed >= overall | measures
    assert finding in {one.id for one in comparison.findings if one.change == "appeared"}
    back = compared(faulty, healthy)
    assert back.verdict == IMPROVED
    assert {row.measure for row in back.rows if row.verdict == IMPROVED} >= overall | measures
    assert finding in {one.id for one in back.findings if one.change == "went"}
    assert {row.verdict for row in compared(faulty, faulty).rows} == {SAME}


@pytest.mark.parametrize("path", LONG_RUNS, ids=lambda path: path.stem)
def test_two_real_captures_and_two_halves_of_one_are_the_same_on_every_measure(path: Path) -> None:
    run = samples(path)
    halves = compare_samples(run[: len(run) // 2], run[len(run) // 2 :])
    assert {row.verdict for row in halves} == {SAME}
    runs = compared([SAMPLES / "healthy.sqlite"], [path])
    judged = {row.verdict for row in runs.rows if row.measure != "kernel_ns"}
    assert judged == {SAME}
    assert runs.verdict == SAME


# what it refuses to say


def row_of(
    base: Sequence[float],
    new: Sequence[float],
    measure: str = "makespan_ns",
    ran: tuple[Setting, Setting] = (Setting(), Setting()),
) -> Row:
    sides = [[Sample({Key(measure): value}) for value in side] for side in (base, new)]
    return compare_samples(sides[0], sides[1], settings=ran)[0]


def test_fewer_than_three_samples_cannot_tell_however_far_apart() -> None:
    row = row_of([10e6, 10e6], [90e6, 90e6, 90e6])
    assert (row.verdict, row.reason) == (CANNOT_TELL, "2 against 3 samples where it takes 3 a side, so capture more")


@pytest.mark.parametrize(
    ("base", "new", "said", "told"),
    [
        ({"gpus": ("H100",)}, {"gpus": ("H200",)}, "other GPU: H100 against H200", {"load_pieces", "accidental_calls"}),
        (
            {"gpus": ("H200",)},
            {"gpus": ("H200", "H200")},
            "other GPU: H200 against 2 times H200",
            {"load_pieces", "accidental_calls"},
        ),
        (
            {"layers": frozenset({8})},
            {"layers": frozenset({16})},
            "other layer count: 8 against 16",
            {"load_rate"},
        ),
        (
            {"load_bytes": 512 << 20},
            {"load_bytes": 256 << 20},
            "other bytes: 512 MiB against 256 MiB a forward",
            {"load_rate", "accidental_calls"},
        ),
        (
            {"layers": frozenset({8}), "layer_bytes": {"layer 0": 64 << 20}, "first_layer": "layer 0"},
            {"layers": frozenset({16}), "layer_bytes": {"layer 0": 64 << 20}, "first_layer": "layer 0"},
            "other layer count: 8 against 16",
            {"load_rate", "first_layer_exposed_ns"},
        ),
    ],
)
def test_what_was_run_differently_is_said_and_only_what_it_leaves_is_judged(
    base: dict[str, object], new: dict[str, object], said: str, told: set[str]
) -> None:
    ran = Setting(**base), Setting(**new)  # type: ignore[arg-type]
    names = ("makespan_ns", "first_layer_exposed_ns", "load_rate", "pipeline_efficiency", "load_pieces")
    rows = {name: row_of([1e6] * 5, [1e6] * 5, name, ran) for name in (*names, "accidental_calls")}
    assert {name for name, row in rows.items() if row.verdict == SAME} == told
    assert {row.reason for name, row in rows.items() if name not in told} == {said}


def test_loads_that_differ_by_a_page_are_the_same_work_and_unnamed_gpus_any_gpu() -> None:
    ran = Setting(("",), load_bytes=1000), Setting(("H200",), load_bytes=1004)
    assert row_of([1e6] * 5, [1e6] * 5, ran=ran).verdict == SAME


def test_a_measure_that_one_side_lacks_cannot_be_told() -> None:
    base = [Sample({Key("makespan_ns"): 1e6, Key("load_rate"): 50.0})] * 5
    new = [Sample({Key("makespan_ns"): 1e6})] * 5
    rows = {row.measure: row for row in compare_samples(base, new)}
    assert rows["makespan_ns"].verdict == SAME
    assert (rows["load_rate"].verdict, rows["load_rate"].reason) == (CANNOT_TELL, "only the base side has it")


# what counts


def test_a_certain_difference_below_the_smallest_effect_is_no_change_unless_it_was_asked_for() -> None:
    base, new = np.linspace(10.0e6, 10.01e6, 20), np.linspace(10.1e6, 10.11e6, 20)
    shuffle = np.random.default_rng(1).permutation(20)
    sides = [[Sample({Key("makespan_ns"): float(value)}) for value in side[shuffle]] for side in (base, new)]
    assert compare_samples(*sides)[0].verdict == SAME
    assert compare_samples(*sides, Thresholds(default=0.005))[0].verdict == REGRESSED
    assert compare_samples(*sides, Thresholds(by_measure={"makespan_ns": 0.005}))[0].verdict == REGRESSED


def test_a_part_counts_by_its_share_of_the_makespan() -> None:
    def side(launch: float) -> list[Sample]:
        return [Sample({Key("makespan_ns"): 10e6, Key("launch"): launch})] * 5

    assert {row.verdict for row in compare_samples(side(50e3), side(150e3))} == {SAME}
    assert changed(compare_samples(side(50e3), side(350e3))) == {("launch", "", REGRESSED)}


def test_what_a_faster_forward_was_paid_with_is_shown_but_fails_nothing() -> None:
    base = [Sample({Key("makespan_ns"): 80e6, Key("load_copy"): 0.0, Key("accidental_calls"): 0})] * 5
    new = [Sample({Key("makespan_ns"): 11e6, Key("load_copy"): 2e6, Key("accidental_calls"): 0})] * 5
    rows = {row.measure: row for row in compare_samples(base, new)}
    assert (rows["load_copy"].verdict, rows["load_copy"].counts) == (REGRESSED, False)
    worse = [replace(one, values={**one.values, Key("accidental_calls"): 2}) for one in new]
    rows = {row.measure: row for row in compare_samples(base, worse)}
    assert (rows["accidental_calls"].verdict, rows["accidental_calls"].counts) == (REGRESSED, True)


def test_several_files_a_side_pool_and_their_own_distance_does_not_count(tmp_path: Path) -> None:
    base = [noisy_trace(tmp_path / f"b{seed}.sqlite", seed, forwards=6) for seed in (31, 32, 33)]
    new = [noisy_trace(tmp_path / f"n{seed}.sqlite", seed, forwards=6, slower={3: 1.08}) for seed in (34, 35, 36)]
    comparison = compared(base, new)
    assert changed(comparison.rows) == {(*LAYER_3, REGRESSED)}
    assert len(comparison.base.samples) == 18
    other_clocks = Noise(compute_ns=1_400_000)
    mixed = [*new[:1], noisy_trace(tmp_path / "slow.sqlite", 37, forwards=6, noise=other_clocks)]
    assert verdict_of(compared(base, mixed), "compute_busy_ns") == SAME


def test_a_finding_of_most_files_of_a_side_counts_as_its() -> None:
    finding = Finding("host_bound", "high", 5, 0.1, "accounting", "m", (), "a")
    base, new = gather_sides([captured(SAMPLES / "healthy.sqlite")] * 2, [captured(SAMPLES / "healthy.sqlite")] * 3)
    with_it = compare(base, replace(new, findings=((finding,), (finding,), ())))
    assert [(one.id, one.change, one.new_cost_ns) for one in with_it.findings] == [("host_bound", "appeared", 5)]
    assert compare(base, replace(new, findings=((finding,), (), ()))).findings == ()


# without forwards


def repeats(path: Path, name: str, kernel_ns: int, count: int = 6, offset: int = 0) -> Path:
    builder = TraceBuilder()
    for index in range(count):
        start = 1_000_000 * (index + 1)
        builder.range(f"{name} {index + offset}", start, start + 50_000)
        builder.kernel(start + 20_000, start + 20_000 + kernel_ns + index * 7, name="work", call=(start + 1, start + 9))
    return builder.write(path)


def test_a_repeated_range_stands_for_the_forward_that_nobody_named(tmp_path: Path) -> None:
    base, new = repeats(tmp_path / "a.sqlite", "step", 500_000), repeats(tmp_path / "b.sqlite", "step", 600_000, 6, 90)
    stand_in = repeated_range([read(base), read(new)])
    assert stand_in is not None
    assert stand_in[0] == "step #"
    assert repeated_range([read(base), read(repeats(tmp_path / "c.sqlite", "pass", 500_000))]) is None


def test_without_any_such_range_kernels_are_compared_call_by_call(tmp_path: Path) -> None:
    comparison = compared(
        [repeats(tmp_path / "a.sqlite", "x", 500_000)], [repeats(tmp_path / "b.sqlite", "y", 600_000)]
    )
    assert verdict_of(comparison, "busy_share") == CANNOT_TELL
    assert verdict_of(comparison, "kernel_call_ns", "work") == REGRESSED
    assert comparison.verdict == CANNOT_TELL


def test_a_short_kernel_may_change_by_less_than_the_hosts_clock_is_worth() -> None:
    row = row_of([3456.0] * 20, [1760.0] * 20, "kernel_call_ns")
    assert row.verdict == IMPROVED
    assert row_of([3456.0] * 20, [3520.0] * 20, "kernel_call_ns").verdict == SAME
