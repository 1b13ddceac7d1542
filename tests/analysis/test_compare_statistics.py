"""The statistics agree with SciPy's, and what happens without a change widens every interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from traceview.analysis import statistics


def run(seed: int, n: int, centre: float = 100.0, scatter: float = 1.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(centre, scatter, n)


def test_the_test_is_mann_and_whitneys() -> None:
    base, new = run(1, 20), run(2, 20, 100.8)
    expected = stats.mannwhitneyu(base, new).pvalue
    assert statistics.differ([base], [new]).p == pytest.approx(expected)


def test_the_interval_holds_exactly_the_shifts_that_the_test_does_not_reject() -> None:
    base, new = run(3, 25), run(4, 25, 101.0)
    found = statistics.differ([base], [new])
    for shift, rejected in ((found.low - 0.02, True), (found.low + 0.05, False), (found.high + 0.05, True)):
        p = stats.mannwhitneyu(base, new - shift, method="asymptotic", use_continuity=False).pvalue
        assert (p < 0.05) == rejected


def test_the_interval_covers_the_true_difference_19_times_in_20() -> None:
    covered = 0
    for seed in range(400):
        found = statistics.differ([run(2 * seed, 12)], [run(2 * seed + 1, 12, 103.0)])
        covered += found.low <= 3.0 <= found.high
    assert covered >= 0.93 * 400


def test_holm_is_what_it_says() -> None:
    assert statistics.adjusted([0.01, 0.04, 0.03]) == pytest.approx((0.03, 0.06, 0.06))
    assert statistics.adjusted([]) == ()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_corrected_p_value_lies_between_the_plain_one_and_bonferronis(p_values: list[float]) -> None:
    for plain, corrected in zip(p_values, statistics.adjusted(p_values), strict=True):
        assert plain <= corrected <= min(1.0, len(p_values) * plain)


def test_drift_inside_a_run_widens_the_interval_and_cannot_count_as_a_change() -> None:
    drifting = run(5, 40, scatter=0.2) + np.linspace(0, 8, 40)
    first, second = drifting[:20], drifting[20:]
    found = statistics.differ([first], [second])
    assert found.shift > 3
    assert found.wander > 3
    assert found.low < 0.5
    assert found.p is not None
    assert found.p > 0.01
    flat = statistics.differ([run(6, 20, scatter=0.2)], [run(7, 20, 104, 0.2)])
    assert flat.wander < 0.5
    assert flat.high - flat.low < found.high - found.low


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_the_drift_is_theil_and_sens(seed: int) -> None:
    values = run(seed, 20) + np.linspace(0, 12, 20)
    found = statistics.differ([values], [np.full(20, 100.0)])
    assert found.wander == pytest.approx(stats.theilslopes(values).slope * 19)


def test_a_trend_that_chance_explains_is_no_drift() -> None:
    drifts = sum(statistics.differ([run(seed, 20)], [np.full(20, 100.0)]).wander > 0 for seed in range(300))
    assert drifts <= 0.03 * 300


def test_samples_that_resemble_their_predecessor_widen_the_interval() -> None:
    generator = np.random.default_rng(8)
    noise = generator.normal(size=60)
    slow = np.zeros(60)
    for index in range(1, 60):
        slow[index] = 0.9 * slow[index - 1] + noise[index]
    shuffled = generator.permutation(slow)
    other = run(9, 60, 0.0)
    widths = [found.high - found.low for found in (statistics.differ([one], [other]) for one in (slow, shuffled))]
    assert widths[0] > 1.3 * widths[1]


def test_the_distance_between_runs_of_one_side_cannot_count_as_a_change() -> None:
    base = [run(10, 10, 100, 0.1), run(11, 10, 105, 0.1)]
    new = [run(12, 10, 103, 0.1), run(13, 10, 108, 0.1)]
    found = statistics.differ(base, new)
    assert found.wander > 4.5
    assert found.low < 0 < found.high


def test_counts_that_never_scatter_differ_or_do_not() -> None:
    eight, nine = np.full(3, 8.0), np.full(3, 9.0)
    assert statistics.differ([eight], [eight]).shift == 0
    assert statistics.clears_spread(statistics.differ([eight], [nine]), 3, 3)
    assert statistics.differ([np.full(20, 8.0)], [np.full(20, 9.0)]).p < 1e-9  # type: ignore[operator]


def test_few_samples_give_the_range_of_all_differences_and_no_test() -> None:
    base, new = np.array([1.0, 2.0, 3.0]), np.array([11.0, 12.0, 14.0])
    found = statistics.differ([base], [new])
    assert (found.shift, found.low, found.high, found.interval) == (10, 8, 13, "range")
    assert statistics.too_few_for_test(3, 3, 1)
    assert not statistics.too_few_for_test(5, 5, 1)
    assert statistics.too_few_for_test(5, 5, 10)


@pytest.mark.parametrize(("n", "most"), [(3, 0.003), (4, 0.003), (5, 0.001)])
def test_noise_seldom_clears_the_spread_of_few_samples(n: int, most: float) -> None:
    false = 0
    for seed in range(4000):
        base, new = run(seed, n), run(seed + 10_000, n)
        false += statistics.clears_spread(statistics.differ([base], [new], smallest=1e9), n, n)
    assert false <= most * 4000


@pytest.mark.parametrize("values", [[7.0], [7.0, 7.0], [1.0, 2.0, 3.0, 4.0, 100.0]])
def test_the_spread_is_the_range_of_few_samples_and_quartiles_of_more(values: list[float]) -> None:
    spread = statistics.describe([np.array(values)])
    expected = (2.0, 4.0) if len(values) >= 5 else (min(values), max(values))
    assert (spread.n, spread.median, spread.low, spread.high) == (len(values), float(np.median(values)), *expected)
