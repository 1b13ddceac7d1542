"""What came into a device over PCIe beside the transfers that the trace shows, by the GPU's own counter.

The counter gives percent of the link's peak with all that the protocol adds, so it becomes bytes only with the link's
ceiling from facts or an option: the best copy of the trace is below that ceiling and would make the bytes too few.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.links import stated_ceiling
from traceview.analysis.sm_movers import UNKNOWN_BYTES
from traceview.report_links import Inbound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from traceview import report
    from traceview.analysis.links import LinkOptions
    from traceview.analysis.sm_movers import SmMoves
    from traceview.analysis.traffic import Traffic
    from traceview.analysis.transfers import Transfers
    from traceview.model import Flags, Ints, Samples, Trace

    Floats = NDArray[np.float64]

PROTOCOL = 0.1
"""What the protocol adds to the bytes of transfers at most.

Measured on an H200 at PCIe 5.0 x16: 4.7 to 7.5 % for copies of 64 KiB to 64 MiB by the copy engine, 9.4 % for a kernel
that reads host memory.
"""

KERNEL_PROTOCOL = 0.094
"""What it adds to what a kernel reads from host memory, likewise."""

MIN_SAMPLES = 10
"""Fewer samples in a forward say nothing about it."""


class LinkMeter:
    """Bytes that one device received over PCIe between any two moments, from samples of its counter."""

    def __init__(self, samples: Samples, ceiling: float) -> None:
        self._ends = samples.end
        self._at = np.concatenate((samples.start[:1], samples.end)).astype(np.float64)
        moved = samples.value * (samples.end - samples.start) * (ceiling / 100)
        self._before = np.concatenate((np.zeros(1), np.cumsum(moved)))

    def received(self, low: Ints, high: Ints) -> Floats:
        """Return the bytes between each ``low`` and ``high`` in ns."""
        before: Floats = np.interp(low, self._at, self._before)
        until: Floats = np.interp(high, self._at, self._before)
        return until - before

    def samples(self, low: int, high: int) -> int:
        """Return how many samples end in [low, high)."""
        first, last = np.searchsorted(self._ends, (low, high))
        return int(last - first)


def link_meters(trace: Trace, options: LinkOptions | None = None) -> dict[int, LinkMeter]:
    """Return the meter of each sampled device whose link is known; none where metrics were not asked for."""
    found = {}
    for one in trace.links or ():
        ceiling = stated_ceiling(trace, one.device, options)
        if ceiling and len(one.received):
            found[one.device] = LinkMeter(one.received, ceiling.rate)
    return found


def measure_inbound(
    trace: Trace,
    forwards: Sequence[report.Forward],
    traffic: Sequence[Traffic],
    options: LinkOptions | None = None,
) -> tuple[Inbound, ...]:
    """Return, for each forward on a sampled device, what it received over PCIe and how much of that is explained.

    A transfer that reaches over an edge of the forward counts with the part of its time that lies inside. Traffic of
    all processes on a device explains what that device received.
    """
    meters = link_meters(trace, options)
    found = []
    for forward in forwards:
        meter, low, high = meters.get(forward.device), forward.t0_ns, forward.t1_ns
        ceiling = stated_ceiling(trace, forward.device, options)
        if meter is None or ceiling is None or meter.samples(low, high) < MIN_SAMPLES:
            continue
        here = [one for one in traffic if one.place[1] == forward.device and one.enters_over_pcie]
        received = float(meter.received(np.array([low]), np.array([high]))[0])
        explained = sum(_moved_between(one.transfers, low, high) for one in here)
        overhead = min(max(received - explained, 0.0), PROTOCOL * explained)
        found.append(
            Inbound(
                forward=forward.index,
                process=forward.process,
                device=forward.device,
                received_bytes=round(received),
                explained_bytes=round(explained),
                overhead_bytes=round(overhead),
                unexplained_bytes=round(max(received - explained - overhead, 0.0)),
                ceiling=ceiling.rate,
                ceiling_from=ceiling.origin,
            )
        )
    return tuple(found)


def metered_moves(
    trace: Trace, moves: SmMoves, traffic: Sequence[Traffic], options: LinkOptions | None = None
) -> SmMoves:
    """Return loading kernels with the bytes that the counter saw, where nothing else says how many they moved.

    What the kernel moved is what the device received while it ran, less what other transfers explain, less what the
    protocol adds.
    """
    meters = link_meters(trace, options)
    device = trace.operation_device()[moves.rows]
    n_bytes = moves.n_bytes.copy()
    for number, meter in meters.items():
        rows = np.flatnonzero((device == number) & (n_bytes == UNKNOWN_BYTES))
        low, high = trace.operations.start[moves.rows[rows]], trace.operations.end[moves.rows[rows]]
        others = [one for one in traffic if one.place[1] == number and one.enters_over_pcie]
        explained = sum((_moved_in_each(one.transfers, low, high) for one in others), np.zeros(len(rows)))
        moved = (meter.received(low, high) - explained * (1 + PROTOCOL / 2)) / (1 + KERNEL_PROTOCOL)
        n_bytes[rows] = np.round(np.maximum(moved, 0)).astype(np.int64)
    return replace(moves, n_bytes=n_bytes)


def _moved_between(transfers: Transfers, low: int, high: int) -> float:
    """Return the bytes that transfers of known bytes moved in [low, high)."""
    inside = np.minimum(transfers.end, high) - np.maximum(transfers.start, low)
    duration = np.maximum(transfers.end - transfers.start, 1)
    kept: Flags = transfers.known & (inside > 0)
    return float((transfers.n_bytes * inside / duration)[kept].sum())


def _moved_in_each(transfers: Transfers, low: Ints, high: Ints) -> Floats:
    """Return the bytes moved in each [low, high), as if they were moved evenly while any of them ran."""
    total, busy = transfers.total_bytes, transfers.busy
    if not total or not busy.length:
        return np.zeros(len(low))
    moved: Floats = intervals.coverage(busy, low, high).astype(np.float64) * (total / busy.length)
    return moved
