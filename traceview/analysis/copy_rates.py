"""The rate of copies by their size, and the ceiling of the link that they use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.analysis.copies import direction_name
from traceview.analysis.overlap import stream_labels
from traceview.model import Direction, Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.model import Trace

MAX_SIZES = 160
"""Distinct sizes of a group that are told apart; more are put together by the 32nd of a power of two."""

LARGE_BYTES = 16 << 20
"""A copy from this size on hides its fixed cost, so that its rate is the link's."""

_GT_PER_S = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""PCI Express Base Specification: giga-transfers per second and lane by generation"""
_LINK_DIRECTIONS = ("h2d", "d2h")


@dataclass(frozen=True)
class SizeRate:
    """Copies of one size: how many, and how fast one of them is (GB/s, which is bytes per ns)."""

    n_bytes: int
    count: int
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class CopyRates:
    """The rates of one group of copies, the smallest size first."""

    device: int
    direction: str
    memory: str
    stream: str
    sizes: tuple[SizeRate, ...]


@dataclass(frozen=True)
class Ceiling:
    """The most that the link to a device can carry in one direction, GB/s, and where that number is from."""

    device: int
    rate: float
    source: str


def measure_rates(trace: Trace) -> tuple[CopyRates, ...]:
    """Return the rates of every group of copies (stream, direction, memory kind), the one with most bytes first.

    A batch that the capture recorded as one row counts as one copy of its pieces' mean size.
    """
    operations = trace.operations
    rows = np.flatnonzero(
        (operations.kind == Kind.COPY) & (operations.n_bytes > 0) & (operations.end > operations.start)
    )
    keys = np.stack((operations.stream[rows], operations.direction[rows], operations.memory[rows]))
    found = []
    for key in np.unique(keys, axis=1).T:
        own = rows[np.all(key == keys.T, axis=1)]
        stream, direction, memory = (int(number) for number in key)
        rates = CopyRates(
            device=trace.streams[stream].device,
            direction=direction_name(direction),
            memory=Memory(memory).name.lower(),
            stream=stream_labels(trace)[stream],
            sizes=_by_size(trace, own),
        )
        found.append((-int(operations.n_bytes[own].sum()), stream, direction, memory, rates))
    return tuple(entry[-1] for entry in sorted(found, key=lambda entry: entry[:-1]))


def _by_size(trace: Trace, rows: np.ndarray) -> tuple[SizeRate, ...]:
    operations = trace.operations
    sizes = operations.n_bytes[rows] // np.maximum(operations.pieces[rows], 1)
    rate = operations.n_bytes[rows] / (operations.end[rows] - operations.start[rows])
    groups = sizes if len(np.unique(sizes)) <= MAX_SIZES else np.round(np.log2(np.maximum(sizes, 1)) * 32)
    order = np.lexsort((rate, groups))
    cuts = np.flatnonzero(np.diff(groups[order])) + 1
    return tuple(
        SizeRate(
            n_bytes=int(np.median(sizes[own])),
            count=len(own),
            low=float(rate[own].min()),
            median=float(np.median(rate[own])),
            high=float(rate[own].max()),
        )
        for own in np.split(order, cuts)
    )


def link_ceilings(trace: Trace) -> tuple[Ceiling, ...]:
    """Return the ceiling of each device's host link: of the captured PCIe link, else the best large pinned copy here.

    No entry for a device of which neither is known.
    """
    found = []
    for device in trace.capture.devices:
        stated = _stated(trace.capture.facts, device)
        best = stated or _best_copy(trace, device)
        if best:
            found.append(best)
    return tuple(found)


def pcie_rate(generation: int, width: int) -> float | None:
    """Return GB/s of a PCIe link in one direction after its encoding, None for a generation that is not known.

    Generation 5 with 16 lanes: 32 * 16 * 128/130 / 8 = 63.0.
    """
    if generation not in _GT_PER_S or width <= 0:
        return None
    encoding = 8 / 10 if generation <= 2 else 128 / 130 if generation <= 5 else 242 / 256
    return _GT_PER_S[generation] * width * encoding / 8


def _stated(facts: Mapping[str, Any] | None, device: int) -> Ceiling | None:
    entries = facts.get("devices") if facts else None
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict) or entry.get("id") != device:
            continue
        generation, width = entry.get("pcie_generation"), entry.get("pcie_width")
        if entry.get("pcie_read") == "while idle":
            # an idle GPU may have slowed its link down; what its copies get is the most that link can do
            generation, width = entry.get("pcie_generation_max", generation), entry.get("pcie_width_max", width)
        if isinstance(generation, int) and isinstance(width, int):
            rate = pcie_rate(generation, width)
            return Ceiling(device, rate, f"PCIe {generation}.0 x{width}, as captured") if rate else None
    return None


def _best_copy(trace: Trace, device: int) -> Ceiling | None:
    operations = trace.operations
    large = (operations.n_bytes // np.maximum(operations.pieces, 1) >= LARGE_BYTES) & (
        operations.end > operations.start
    )
    linked = np.isin(operations.direction, (Direction.H2D, Direction.D2H)) & (operations.memory == Memory.PINNED)
    rows = np.flatnonzero(large & linked & (trace.operation_device() == device))
    if not len(rows):
        return None
    rate = operations.n_bytes[rows] / (operations.end[rows] - operations.start[rows])
    return Ceiling(device, float(rate.max()), "the best large pinned copy of this trace")
