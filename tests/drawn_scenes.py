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


def eight_layers(path: Path, forwards: int = 3, *, read_back: bool = True) -> Path:
    """Write forwards of eight layers; with ``read_back`` the host waits for a scalar after each layer's compute."""
    builder = TraceBuilder()
    at = MS
    for number in range(forwards):
        at = _layered(builder, at, number, read_back)
    return builder.write(path)


def _layered(builder: TraceBuilder, start: int, number: int, read_back: bool) -> int:
    """Add a forward that begins at ``start``; return when the next one may."""
    host = start + 20 * US
    loaded = []
    begun = host + 40 * US
    for layer in range(8):
        builder.copy(begun, begun + 1_200 * US, "h2d", 64 << 20, stream=13, call=(host, host + 6 * US))
        builder.record(layer + 1, stream=13, call=(host + 7 * US, host + 9 * US), sync=number * 100 + layer + 1)
        builder.range(f"load layer {layer}", host - US, host + 10 * US)
        loaded.append(begun + 1_200 * US)
        begun, host = begun + 1_203 * US, host + 12 * US
    busy = 0
    for layer in range(8):
        opened = host
        builder.wait(layer + 1, stream=7, call=(host, host + 2 * US), sync=number * 100 + layer + 1)
        host += 4 * US
        for part in range(2):
            begins = max(host + 12 * US, busy + 2 * US, loaded[layer] + 5 * US)
            builder.kernel(begins, begins + 650 * US, name=f"gemm_{part}", stream=7, call=(host, host + 5 * US))
            busy, host = begins + 650 * US, host + 9 * US
        if read_back:
            builder.copy(busy + 3 * US, busy + 5 * US, "d2h", 2, stream=7, call=(host, host + 5 * US))
            builder.stream_sync(stream=7, call=(host + 6 * US, busy + 14 * US))
            busy, host = busy + 5 * US, busy + 70 * US
        builder.range(f"compute layer {layer}", opened, host)
    builder.range(f"forward {number}", start, max(host, busy) + 20 * US)
    return max(host, busy) + 3 * MS


def wide_numbers(path: Path) -> Path:
    """Write forwards of 2.6 s that all but reach the ideal, in a process and on streams with long numbers."""
    builder = TraceBuilder(process=4_194_303)
    start = MS
    for number in range(3):
        begun = start + 100 * US
        loads = [[(begun, begun + 650 * MS)], [(begun + 650 * MS, begun + 1_300 * MS)]]
        computes = [[(begun + 650 * MS + 5 * US, begun + 1_950 * MS)], [(begun + 1_950 * MS, begun + 2_600 * MS)]]
        layered_forward(builder, start=start, loads=loads, computes=computes, number=number, streams=(100_013, 100_007))
        start += 2_700 * MS
    for stream in range(7):
        at = start + stream * MS
        builder.kernel(at, at + 5 * MS, stream=100_100 + stream, call=(at - 20, at - 10))
        builder.copy(at, at + 5 * MS, "h2d", 64 << (10 + stream), stream=100_200 + stream, call=(at - 40, at - 30))
    return builder.write(path)


def broken_layers(path: Path) -> Path:
    """Write forwards whose layers compute in two kernels with a long hole between them."""
    builder = TraceBuilder()
    for number in range(3):
        start = MS * (1 + 20 * number)
        loads, computes = [], []
        for layer in range(3):
            load, compute = start + MS + layer * MS, start + 2 * MS + 4 * layer * MS
            loads.append([(load, load + MS)])
            computes.append([(compute + US, compute + MS), (compute + 3 * MS, compute + 4 * MS)])
        layered_forward(builder, start=start, loads=loads, computes=computes, number=number)
        builder.copy(start, start + US, "d2d", 64 << 20, stream=7, call=(start + 1, start + 2))
    return builder.write(path)
