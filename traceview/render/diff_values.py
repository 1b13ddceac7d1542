"""Writes values of a comparison for people: a number in its unit, a signed difference, an interval, a scatter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.analysis.compare_measures import MEASURES
from traceview.units import count, duration, percent, rate

if TYPE_CHECKING:
    from traceview.analysis.compare import Row

MINUS = "-"


def value(unit: str, number: float) -> str:
    """Write a number in its measure's unit."""
    if unit == "ns":
        return duration(number)
    if unit == "rate":
        return rate(number)
    if unit == "ratio":
        return percent(number)
    return count(int(number)) if float(number).is_integer() else f"{number:,.1f}"


def scatter(row: Row) -> str:
    """Write half the width of the wider spread of both sides, as a share of its median: ``±0.6 %``."""
    shares = [
        50 * (side.high - side.low) / abs(side.median)
        for side in (row.base, row.new)
        if side is not None and side.median
    ]
    widest = max(shares, default=0.0)
    return f"±{digits(widest)} %" if widest else ""


def change(row: Row) -> str:
    """Write the difference: ``+8.2 %`` of the base's median, ``-7.5 pt`` of a ratio, ``+7`` of a count.

    ``+1.015 ms`` where the base has nothing to take a share of.
    """
    found = row.difference
    if found is None or row.base is None:
        return ""
    unit = MEASURES[row.measure].unit
    if not found.shift:
        return "0"
    if unit == "ratio":
        return f"{_signed(100 * found.shift)} pt"
    if row.base.median and unit != "count":
        return f"{_signed(100 * found.shift / abs(row.base.median))} %"
    return absolute(row)


def absolute(row: Row) -> str:
    """Write the difference in the measure's unit: ``+967.8 µs``."""
    if row.difference is None:
        return ""
    unit, shift = MEASURES[row.measure].unit, row.difference.shift
    return f"{_signed(100 * shift)} pt" if unit == "ratio" else f"{_sign(shift)}{value(unit, abs(shift))}"


def interval(row: Row) -> str:
    """Write the interval of the difference in the unit of :func:`change`."""
    found = row.difference
    if found is None or row.base is None or found.low == found.high:
        return ""
    unit = MEASURES[row.measure].unit
    if unit == "ratio" or (row.base.median and unit != "count"):
        scale = 100 if unit == "ratio" else 100 / abs(row.base.median)
        return f"{_signed(scale * found.low)} to {_signed(scale * found.high)}"
    return f"{_sign(found.low)}{value(unit, abs(found.low))} to {_sign(found.high)}{value(unit, abs(found.high))}"


def _signed(number: float) -> str:
    return f"{_sign(number)}{digits(abs(number))}"


def _sign(number: float) -> str:
    return "+" if number > 0 else MINUS if number < 0 else ""


def digits(number: float) -> str:
    """Write a number with about two digits that count."""
    if number >= 9.95:
        return f"{number:,.0f}"
    return f"{number:.1f}" if number >= 0.095 or number == 0 else f"{number:.2f}"
