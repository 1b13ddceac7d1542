"""Traces to be drawn: many layers, many operations, and names that try to be more than names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from report_samples import HOSTILE
from trace_builder import TraceBuilder, layered_forward

if TYPE_CHECKING:
    from pathlib import Path

US = 1_000
MS = 1_000_000


def many_layers(path: Path, layers: int = 64, forwards: int = 3) -> Path:
    """Write forwards of ``layers`` layers, loads a little shorter than compute; every eighth layer computes late."""
    builder = TraceBuilder()
    start = MS
    for number in range(forwards):
        loads, computes = [], []
        begun = busy = start + 300 * US
        for layer in range(layers):
            begun_next = begun + 200 * US
            late = 60 * US if layer % 8 == 7 else 4 * US
            starts = max(busy, begun_next) + late
            loads.append([(begun, begun_next)])
            computes.append([(starts, starts + 120 * US), (starts + 122 * US, starts + 220 * US)])
            begun, busy = begun_next, starts + 220 * US + number
        layered_forward(builder, start=start, loads=loads, computes=computes, number=number, step=1 * US)
        start = busy + 2 * MS
    return builder.write(path)


def many_operations(path: Path, operations: int = 100_000) -> Path:
    """Write one forward of 40 layers with ``operations`` copies and kernels in all, each launched by a call."""
    layers, apart = 40, 2_000
    each = operations // layers // 2
    start, loads, computes = MS, [], []
    first_load, first_compute = start + 10 * US, start + 10 * US + each * apart
    for layer in range(layers):
        load, compute = (first + layer * each * apart for first in (first_load, first_compute))
        loads.append([(load + piece * apart, load + piece * apart + 1_500) for piece in range(each)])
        computes.append([(compute + piece * apart, compute + piece * apart + 1_800) for piece in range(each)])
    builder = TraceBuilder()
    layered_forward(builder, start=start, loads=loads, computes=computes, step=300, n_bytes=64 << 10)
    return builder.write(path)


def hostile_names(path: Path) -> Path:
    """Write two forwards whose ranges, kernels and calls have names with markup, escapes and 10,000 characters."""
    builder = TraceBuilder()
    for number in range(2):
        start = MS * (1 + 10 * number)
        layered_forward(
            builder,
            start=start,
            loads=[[(start + 300 * US, start + 500 * US)], [(start + 500 * US, start + 700 * US)]],
            computes=[[(start + 510 * US, start + 700 * US)], [(start + 760 * US, start + 900 * US)]],
            number=number,
        )
        builder.range(f"'\"></td><script>alert({number})</script>", start + 1, start + 900 * US)
        builder.range(HOSTILE, start + 2, start + 800 * US)
        kernel = {"name": "<img src=x onerror=alert(1)>\u2028</script>" + HOSTILE, "stream": 9}
        builder.kernel(start + 200 * US, start + 290 * US, call=(start + 100, start + 200), **kernel)
        builder.api("$\\frac{1}{0}$<b>cudaFoo</b>", start + 300, start + 20 * US)
    return builder.write(path)
