from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceview.units import count, duration, milliseconds, percent, rate, size

MIB = 1 << 20


@pytest.mark.parametrize(
    ("ns", "written"),
    [
        (0, "0"),
        (812, "812 ns"),
        (1_226_000, "1.226 ms"),
        (59_104_000, "59.1 ms"),
        (11_797_600, "11.8 ms"),
        (999_999, "1 ms"),
        (999_940_000, "999.9 ms"),
        (999_960_000, "1 s"),
        (-3_200, "-3.2 µs"),
        (2_212_000_000_000, "2,212 s"),
    ],
)
def test_a_time_is_written_in_the_unit_that_suits_it(ns: int, written: str) -> None:
    assert duration(ns) == written


@pytest.mark.parametrize(
    ("ns", "written"),
    [
        (0, "0"),
        (11_797_600, "11.798"),
        (499, "<0.001"),
        (-499, ">-0.001"),
        (2_209_386_000, "2,209.386"),
        (500.5, "0.001"),
    ],
)
def test_a_column_of_milliseconds_shows_microseconds_and_no_false_zero(ns: float, written: str) -> None:
    assert milliseconds(ns) == written


@pytest.mark.parametrize(
    ("n_bytes", "written"),
    [
        (0, "0 B"),
        (7, "7 B"),
        (64 * MIB, "64 MiB"),
        (1.34 * MIB, "1.34 MiB"),
        (MIB - 1, "1 MiB"),
        (2.5 * 1024 * MIB, "2.5 GiB"),
    ],
)
def test_a_size_is_written_in_powers_of_1024(n_bytes: float, written: str) -> None:
    assert size(n_bytes) == written


@pytest.mark.parametrize(
    ("bytes_per_ns", "written"),
    [(55.34, "55.3 GB/s"), (0.0421, "42.1 MB/s"), (396.4, "396 GB/s"), (1_520, "1.52 TB/s")],
)
def test_a_rate_in_bytes_per_ns_is_written_in_powers_of_1000(bytes_per_ns: float, written: str) -> None:
    assert rate(bytes_per_ns) == written


@pytest.mark.parametrize(
    ("ratio", "written"),
    [
        (0.31, "31 %"),
        (0.031, "3.1 %"),
        (0.0996, "10 %"),
        (0.0001, "<0.1 %"),
        (0.9967, "99.7 %"),
        (0.99999, ">99.9 %"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (12.5, "1,250 %"),
    ],
)
def test_a_ratio_is_written_in_percent(ratio: float, written: str) -> None:
    assert percent(ratio) == written


def test_a_count_has_its_thousands_apart() -> None:
    assert count(40_960) == "40,960"


@given(st.floats(min_value=0, max_value=1))
def test_only_nothing_is_0_percent_and_only_all_is_100_percent(ratio: float) -> None:
    assert (percent(ratio) == "0 %") == (ratio * 100 == 0)
    assert (percent(ratio) == "100 %") == (ratio * 100 == 100)


@given(st.integers(min_value=1, max_value=10**15))
def test_a_written_time_is_within_a_thousandth_of_the_time(ns: int) -> None:
    number, unit = duration(ns).split()
    factor = {"ns": 1, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}[unit]
    assert float(number.replace(",", "")) * factor == pytest.approx(ns, rel=1e-3)
