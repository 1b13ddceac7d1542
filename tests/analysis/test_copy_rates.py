"""Rates of copies by their size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trace_builder import TraceBuilder

from traceview.analysis.copy_rates import MAX_SIZES, measure_rates
from traceview.reading import read

if TYPE_CHECKING:
    from pathlib import Path


def test_each_size_has_its_slowest_median_and_fastest_rate(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for at, took in enumerate((100, 200, 400)):
        builder.copy(1_000 * at, 1_000 * at + took, "h2d", 4_000, call=(0, 1))
    builder.copy(9_000, 9_500, "h2d", 50_000, call=(2, 3)).copy(9_600, 9_650, "d2h", 100, call=(4, 5))
    loads, back = measure_rates(read(builder.write(tmp_path / "copies.sqlite")))
    small, large = loads.sizes
    assert (small.n_bytes, small.count, small.low, small.median, small.high) == (4_000, 3, 10.0, 20.0, 40.0)
    assert (large.n_bytes, large.median) == (50_000, 100.0)
    assert (loads.direction, loads.memory, back.direction) == ("h2d", "pinned", "d2h")


def test_many_sizes_are_put_together_and_none_is_lost(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for at in range(3_000):
        builder.copy(1_000 * at, 1_000 * at + 500, "h2d", 1_000 + 17 * at)
    (loads,) = measure_rates(read(builder.write(tmp_path / "copies.sqlite")))
    assert len(loads.sizes) <= MAX_SIZES * 2
    assert sum(size.count for size in loads.sizes) == 3_000
    assert [size.n_bytes for size in loads.sizes] == sorted(size.n_bytes for size in loads.sizes)


def test_a_copy_that_took_no_time_has_no_rate(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(5, 5, "h2d", 64).kernel(10, 20)
    assert measure_rates(read(builder.write(tmp_path / "copies.sqlite"))) == ()
