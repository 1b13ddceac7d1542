"""The rate of copies by their size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.copies import direction_name
from traceview.analysis.overlap import stream_labels
from traceview.model import Kind, Memory

if TYPE_CHECKING:
    from traceview.model import Trace

MAX_SIZES = 160
"""Distinct sizes of a group that are told apart; more are put together by the 32nd of a power of two."""


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


def measure_rates(trace: Trace) -> tuple[CopyRates, ...]:
    """Return the rates of every group of copies (stream, direction, memory kind), the one with most bytes first.

    A batch that the capture recorded as one row counts as one copy of its pieces' mean size.
    """
    operations = trace.operations
    rows = np.flatnonzero(
        (operations.kind == Kind.COPY) & (operations.n_bytes > 0) & (operations.end > operations.start)
    )
    keys = np.stack((operations.stream[rows], operations.direction[rows], operations.memory[rows]))
    labels = stream_labels(trace)
    found = []
    for key in np.unique(keys, axis=1).T:
        own = rows[np.all(key == keys.T, axis=1)]
        stream, direction, memory = (int(number) for number in key)
        rates = CopyRates(
            device=trace.streams[stream].device,
            direction=direction_name(direction),
            memory=Memory(memory).name.lower(),
            stream=labels[stream],
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
