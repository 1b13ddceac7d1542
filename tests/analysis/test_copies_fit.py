"""The cost of a piece: the line through copies of several sizes."""

from __future__ import annotations

import numpy as np
import pytest

from traceview.analysis.copies import fit_line

SIZES = np.array([4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304], dtype=np.int64)


def line(cost_ns: float, rate: float) -> np.ndarray:
    return np.round(cost_ns + SIZES / rate).astype(np.int64)


@pytest.mark.parametrize(("cost", "rate"), [(2_000.0, 55.0), (700.0, 7.0), (10_000.0, 25.0)])
def test_fixed_cost_rate_and_the_size_at_half_of_it(cost: float, rate: float) -> None:
    fit = fit_line(SIZES, line(cost, rate))
    assert fit.piece_cost_ns == pytest.approx(cost, rel=0.01)
    assert fit.rate == pytest.approx(rate, rel=0.01)
    assert fit.half_bytes == pytest.approx(cost * rate, rel=0.02)


def test_outliers_do_not_move_it() -> None:
    """One copy of each size in ten took a hundred times as long."""
    sizes, durations = np.tile(SIZES, 10), np.tile(line(2_000.0, 55.0), 10)
    durations[: len(SIZES)] *= 100
    fit = fit_line(sizes, durations)
    assert fit.piece_cost_ns == pytest.approx(2_000.0, rel=0.01)
    assert fit.rate == pytest.approx(55.0, rel=0.01)


@pytest.mark.parametrize(
    ("sizes", "durations", "reason"),
    [
        (SIZES[:2], [100, 200], "sizes vary too little"),
        (np.array([100, 110, 120]), [10, 11, 12], "sizes vary too little"),
        (SIZES, [500] * 6, "durations do not grow with size"),
        (np.array([], dtype=np.int64), [], "sizes vary too little"),
    ],
)
def test_what_no_line_fits_is_not_identifiable(sizes: np.ndarray, durations: list[int], reason: str) -> None:
    fit = fit_line(sizes, np.array(durations, dtype=np.int64))
    assert (fit.identifiable, fit.reason, fit.half_bytes) == (False, reason, None)
