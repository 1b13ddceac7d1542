"""Whether two sets of samples differ: medians, spread, an interval for the difference, and one test for a whole family.

Nothing here knows what is measured. A side is a tuple of runs, a run the samples of one capture in the order in which
they were taken; runs of a side pool. What varies without a change cannot count as one, so two things widen every
interval and shrink every difference before it is tested: drift inside a run (or distance between the runs of a side),
and samples that resemble their predecessor.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb, sqrt
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Runs = Sequence[Floats]

ALPHA = 0.05
"""Share of comparisons without any change in which one may be reported all the same, over the whole family."""

FEWEST = 3
"""Fewer samples on a side say nothing about spread."""

DRIFT_FEWEST = 6
"""A trend through fewer samples is a guess."""

_EXACT_MOST = 8
"""largest smaller side for which the test is worked out exactly"""

_MEMORY_FEWEST = 12
_MOST_ALIKE = 0.9
_Z_95, _Z_99 = 1.959964, 2.575829
_Z_MEMORY = 2.326
"""one-sided 99 %: a lag-one correlation above this many standard errors is no accident"""


@dataclass(frozen=True)
class Spread:
    """The samples of one side: how many, their median, and where they lie."""

    n: int
    median: float
    low: float
    high: float
    """quartiles, or the whole range below five samples"""


@dataclass(frozen=True)
class Difference:
    """The difference of two medians with its uncertainty, before anything is decided."""

    shift: float
    low: float
    high: float
    interval: str
    """``95%`` (rank interval), or ``range`` (all differences between a sample and a sample) where samples are few"""
    wander: float
    """drift inside a run, or distance between the runs of one side: as much as this happens without a change"""
    spread: float
    """range of the one side plus range of the other"""
    p: float | None
    """two-sided rank test of what ``wander`` and ``explained`` leave of the difference; None where it was not tested"""
    explained: float = 0.0
    """how much of the shift is known to have another cause"""

    @property
    def left(self) -> float:
        """Return what is left of the shift without what is explained."""
        return abs(self.shift) - self.explained


def describe(runs: Runs) -> Spread:
    """Return the median of all samples of a side, and their quartiles (below five samples, their range)."""
    values = np.concatenate(list(runs))
    shares = (25, 75) if len(values) >= 5 else (0, 100)
    low, high = np.percentile(values, shares)
    return Spread(len(values), float(np.median(values)), float(low), float(high))


def differ(base: Runs, new: Runs, smallest: float = 0.0, expected: float = 0.0) -> Difference:
    """Return how far the new side's median lies from the base's; both sides hold at least one sample.

    ``expected`` is a shift that another cause explains; as far as the shift goes the same way, it does not count. What
    is left, where it is below ``smallest`` and would not count anyhow, is not tested.
    """
    first, second = np.concatenate(list(base)), np.concatenate(list(new))
    shift = float(np.median(second) - np.median(first))
    explained = min(abs(expected), abs(shift)) if shift * expected > 0 else 0.0
    spread = float(np.ptp(first) + np.ptp(second))
    tested = abs(shift) - explained >= smallest and shift != 0
    if spread == 0:
        # no sample differs from another of its side: the test only knows how many there are
        clearest = _smallest_p(len(first), len(second))
        return Difference(shift, shift, shift, _interval_name(clearest), 0.0, 0.0, clearest if tested else None)
    wander, inflation = _uncertainty([*base, *new], (base, new))
    memory = sqrt(inflation)
    low, high, interval = _rank_interval(first, second)
    low, high = min(low, shift), max(high, shift)
    moved = second - np.sign(shift) * min(wander + explained, abs(shift))
    return Difference(
        shift=shift,
        low=shift - (shift - low) * memory - wander - (explained if shift > 0 else 0.0),
        high=shift + (high - shift) * memory + wander + (explained if shift < 0 else 0.0),
        interval=interval,
        wander=wander,
        spread=spread,
        p=None if not tested else 1.0 if wander + explained >= abs(shift) else _rank_p(first, moved, memory),
        explained=explained,
    )


def adjusted(p_values: Sequence[float]) -> tuple[float, ...]:
    """Return p-values after Holm: the chance of even one false alarm in the whole family stays below each of them."""
    order = np.argsort(p_values, kind="stable")
    result = np.ones(len(p_values))
    reached = 0.0
    for rank, index in enumerate(order.tolist()):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[index]))
        result[index] = reached
    return tuple(result.tolist())


def too_few_for_test(n_base: int, n_new: int, family: int) -> bool:
    """Return whether no outcome of the rank test, however clear, could pass the correction for the family."""
    return _smallest_p(n_base, n_new) * max(family, 1) > ALPHA


def clears_spread(difference: Difference, n_base: int, n_new: int) -> bool:
    """Return whether a difference of few samples is larger than both spreads together, twice that for three samples.

    Simulated with normal noise, that happens by chance to one measure in a thousand with 3 against 3 samples as well as
    with 4 against 4, so to 4 % of comparisons of 40 unrelated measures.
    """
    needed = difference.spread * (2 if min(n_base, n_new) <= FEWEST else 1)
    return difference.left > max(needed, difference.wander)


def _smallest_p(n_base: int, n_new: int) -> float:
    """Return the p-value of the clearest outcome: every sample of one side above every sample of the other."""
    return min(1.0, 2 / comb(n_base + n_new, n_base))


def _rank_interval(first: Floats, second: Floats) -> tuple[float, float, str]:
    """Return the interval of shifts that the rank test would not reject at 5 %.

    That is, ranks ``k`` and ``n m + 1 - k`` of all differences between a sample and a sample, with ``k`` by the normal
    approximation (Hollander, Wolfe & Chicken, Nonparametric Statistical Methods, 4.3).
    """
    differences = np.sort((second[:, None] - first[None, :]).ravel())
    pairs = len(differences)
    interval = _interval_name(_smallest_p(len(first), len(second)))
    if interval == "range":
        return float(differences[0]), float(differences[-1]), interval
    half = _Z_95 * sqrt(pairs * (len(first) + len(second) + 1) / 12)
    rank = max(int(pairs / 2 - half), 1)
    return float(differences[rank - 1]), float(differences[pairs - rank]), interval


def _rank_p(first: Floats, second: Floats, memory: float) -> float:
    """Return the two-sided p-value of Mann and Whitney's test, its deviation divided by ``memory``."""
    if _smallest_p(len(first), len(second)) > ALPHA:
        return 1.0
    from scipy.stats import mannwhitneyu, norm

    # values that only one side repeats leave the exact distribution as it is; those that both have do not
    exact = min(len(first), len(second)) <= _EXACT_MOST and not np.isin(first, second).any()
    method = "exact" if exact else "asymptotic"
    p = float(mannwhitneyu(first, second, alternative="two-sided", method=method).pvalue)
    return p if memory <= 1 else float(2 * norm.sf(norm.isf(p / 2) / memory))


def _interval_name(smallest_p: float) -> str:
    return "95%" if smallest_p <= ALPHA else "range"


def _uncertainty(runs: Runs, sides: tuple[Runs, Runs]) -> tuple[float, float]:
    """Return how far a side moves by itself, and by how much samples that resemble each other inflate the variance.

    The first is the largest drift of a run or the largest distance between the medians of a side's runs.
    """
    wander, inflation = 0.0, 1.0
    for run in runs:
        slope = _slope(run)
        wander = max(wander, abs(slope) * (len(run) - 1))
        inflation = max(inflation, _variance_inflation(run - slope * np.arange(len(run))))
    for side in sides:
        medians = [float(np.median(run)) for run in side]
        wander = max(wander, max(medians) - min(medians))
    return wander, inflation


def _slope(run: Floats) -> float:
    """Return the drift per sample, 0 where chance explains it.

    Theil and Sen's median of the slopes between any two samples, with Sen's 99 % interval (Sen 1968, JASA 63).
    """
    n = len(run)
    if n < DRIFT_FEWEST or np.ptp(run) == 0:
        return 0.0
    first, second = np.triu_indices(n, 1)
    slopes = np.sort((run[second] - run[first]) / (second - first))
    half = _Z_99 * sqrt(n * (n - 1) * (2 * n + 5) / 18)
    low = max(int(np.floor((len(slopes) - half) / 2)), 0)
    if slopes[low] <= 0 <= slopes[-1 - low]:
        return 0.0
    return float(np.median(slopes))


def _variance_inflation(rest: Floats) -> float:
    """Return by how much the variance of a mean grows because samples resemble their predecessor; 1 where they do not.

    (1 + r) / (1 - r) for the lag-one correlation r of what a trend leaves, where r is beyond chance.
    """
    if len(rest) < _MEMORY_FEWEST:
        return 1.0
    rest = rest - rest.mean()
    power = float(rest @ rest)
    correlation = float(rest[1:] @ rest[:-1]) / power if power else 0.0
    if correlation <= _Z_MEMORY / sqrt(len(rest)):
        return 1.0
    correlation = min(correlation, _MOST_ALIKE)
    return (1 + correlation) / (1 - correlation)
