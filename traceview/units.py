"""How times, sizes, rates, ratios and counts are written for people; the only place that divides nanoseconds.

::

    1_226_000 ns    1.226 ms          67_108_864 bytes     64 MiB          0.31     31 %
    59_104_000 ns   59.1 ms           55.34 bytes per ns   55.3 GB/s       8192     8,192

Sizes are powers of 1024 and say so (KiB, MiB), rates powers of 1000 (GB/s), as vendors write them.
"""

from __future__ import annotations

_TIMES = ("ns", "µs", "ms", "s")
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB")
_RATES = ("B/s", "KB/s", "MB/s", "GB/s", "TB/s")
_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000


def duration(ns: float) -> str:
    """Write a time with the unit that suits it and up to four digits: ``812 ns``, ``1.226 ms``, ``59.1 ms``."""
    return _scaled(ns, _TIMES, step=1000, digits=4) if ns else "0"


def milliseconds(ns: float) -> str:
    """Write a time as a bare number of ms to the µs, for a column whose title names the unit: ``11.798``."""
    if ns == 0:
        return "0"
    if abs(ns) < 500:
        return "<0.001" if ns > 0 else ">-0.001"
    return f"{ns / _NS_PER_MS:,.3f}"


def size(n_bytes: float) -> str:
    """Write a number of bytes in powers of 1024 and up to three digits: ``64 MiB``, ``1.34 MiB``, ``7 B``."""
    return _scaled(n_bytes, _SIZES, step=1024, digits=3)


def rate(bytes_per_ns: float) -> str:
    """Write a rate given in bytes per ns (which is GB/s) with up to three digits: ``55.3 GB/s``, ``42.1 MB/s``."""
    return _scaled(bytes_per_ns * _NS_PER_S, _RATES, step=1000, digits=3)


def percent(ratio: float) -> str:
    """Write a ratio in percent: ``31 %``, ``3.1 %``; 0 % and 100 % only where the ratio is exactly 0 or 1."""
    value = ratio * 100
    if value in (0, 100):
        return f"{value:.0f} %"
    if 0 < value < 0.05:
        return "<0.1 %"
    if 99.95 <= value < 100:
        return ">99.9 %"
    fine = 0 < value < 9.95 or 99.5 <= value < 100
    return f"{value:,.1f} %" if fine else f"{value:,.0f} %"


def count(number: int) -> str:
    """Write a count with its thousands apart: ``8,192``."""
    return f"{number:,}"


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a count with its noun in the form that it needs: ``1 call``, ``8,192 calls``, ``2 processes``."""
    return f"{count(number)} {noun if number == 1 else plural or f'{noun}s'}"


def _scaled(value: float, units: tuple[str, ...], step: int, digits: int) -> str:
    """Return ``value`` in the largest unit in which it rounds to at least one, with ``digits`` digits."""
    rounds_up = step - 0.5 * 10 ** (3 - digits)
    unit = 0
    while unit < len(units) - 1 and abs(value) >= rounds_up:
        value /= step
        unit += 1
    return f"{_rounded(value, digits)} {units[unit]}"


def _rounded(value: float, digits: int) -> str:
    """Return ``value`` with ``digits`` digits in all, thousands apart, without zeros that say nothing."""
    whole = len(str(int(abs(value))))
    text = f"{value:,.{max(0, digits - whole)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
