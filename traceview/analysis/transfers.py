"""The transfers to and from a device by class: who moves what which way, over which links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.places import of_process, on_device
from traceview.analysis.sm_movers import UNKNOWN_BYTES
from traceview.model import Direction, Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.analysis.sm_movers import SmMoves
    from traceview.intervals import Intervals
    from traceview.model import Flags, Ints, Trace

IN, OUT, HOST = "in", "out", "host"
"""Into the device, out of it, or neither: between storage and host memory."""
COPY_ENGINE, CPU, SMS, NIC, DRIVER = "copy engine", "CPU, then copy engine", "SMs", "NIC", "driver"
READER = "CPU or DMA"
"""Who brings what storage holds into host memory; the trace does not tell which."""

_HOST_MEMORIES = {
    Memory.PINNED: ("", COPY_ENGINE),
    Memory.PAGEABLE: (" pageable", CPU),
    Memory.MANAGED: (" managed", COPY_ENGINE),
    Memory.DEVICE: (" device", COPY_ENGINE),
    Memory.UNKNOWN: (" unknown", COPY_ENGINE),
}
"""What a class is called by the memory of its host side, and who moves it."""


@dataclass(frozen=True, eq=False)
class Transfers:
    """All transfers of one class to or from one device, in start order; arrays of one length."""

    name: str
    """its class, unique on the device: ``h2d``, ``h2d pageable``, ``h2d by SMs``, ``d2h``, ``p2p in``, ``rdma in``"""
    direction: str
    """``in`` or ``out``, seen from the device, or ``host``"""
    mover: str
    memory: str
    start: Ints
    end: Ints
    n_bytes: Ints
    """``UNKNOWN_BYTES`` where nothing says so"""
    peer: int | None = None
    """the other device of a peer copy"""
    nic: str | None = None

    @property
    def known(self) -> Flags:
        """Return of which transfers the bytes are known."""
        known: Flags = self.n_bytes != UNKNOWN_BYTES
        return known

    @property
    def total_bytes(self) -> int | None:
        """Return the bytes of all transfers, None where those of any are unknown."""
        return int(self.n_bytes.sum()) if self.known.all() else None

    @cached_property
    def busy(self) -> Intervals:
        """Return when any of them ran."""
        return intervals.union(self.start, self.end)

    @cached_property
    def typical_bytes(self) -> int:
        """Return the size up to which transfers carry half of the bytes, 0 where none is known."""
        sizes = np.sort(self.n_bytes[self.known])
        if not len(sizes):
            return 0
        reached = np.cumsum(sizes)
        return int(sizes[np.searchsorted(reached, reached[-1] / 2)])

    @cached_property
    def typical(self) -> Flags:
        """Return which transfers are of about the typical size, within a factor of 2.

        Small ones cost time that has nothing to do with the link, so they must not be compared with large ones.
        """
        size = self.typical_bytes
        near: Flags = self.known & (2 * self.n_bytes >= size) & (self.n_bytes <= 2 * size)
        return near & (self.end > self.start)


def device_transfers(trace: Trace, process: int, device: int, moves: SmMoves) -> tuple[Transfers, ...]:
    """Return the classes of transfers of one device that have any: copies, peer copies, loading kernels, migrations."""
    operations = trace.operations
    own = of_process(trace, process)
    there = on_device(trace, device)
    mine = own & (operations.kind == int(Kind.COPY))
    found = [*_host_copies(trace, mine & there), *_peer_copies(trace, mine, device)]
    kernels = moves.take((own & there)[moves.rows])
    found.append(
        Transfers(
            name="h2d by SMs",
            direction=IN,
            mover=SMS,
            memory="unknown",
            start=operations.start[kernels.rows],
            end=operations.end[kernels.rows],
            n_bytes=kernels.n_bytes,
        )
    )
    found += _migrations(trace, process, device)
    return tuple(transfers for transfers in found if len(transfers.start))


def _host_copies(trace: Trace, here: Flags) -> Iterator[Transfers]:
    operations = trace.operations
    for way, word, direction in ((Direction.H2D, "h2d", IN), (Direction.D2H, "d2h", OUT)):
        there = here & (operations.direction == int(way))
        for memory, (suffix, mover) in _HOST_MEMORIES.items():
            rows = np.flatnonzero(there & (operations.memory == int(memory)))
            yield _of_rows(trace, rows, f"{word}{suffix}", direction, (mover, memory.name.lower()))


def _peer_copies(trace: Trace, mine: Flags, device: int) -> list[Transfers]:
    """Return peer copies by the other device; only where there are several does the name say which."""
    operations = trace.operations
    peers = np.flatnonzero(mine & (operations.direction == int(Direction.P2P)))
    # a copy stands on its source's device where the export names no other
    source, target = operations.source[peers], operations.target[peers]
    source = np.where(source >= 0, source, trace.stream_devices()[operations.stream[peers]])
    found = []
    for direction, own, other in ((IN, target, source), (OUT, source, target)):
        here = (own == device) & (source != target)
        several = np.unique(other[here]).tolist()
        for peer in several:
            name = f"p2p {direction}" if len(several) == 1 else f"p2p {direction}, GPU {peer}"
            one = _of_rows(trace, peers[here & (other == peer)], name, direction, (COPY_ENGINE, "device"))
            found.append(replace(one, peer=peer if peer >= 0 else None))
    return found


def _migrations(trace: Trace, process: int, device: int) -> Iterator[Transfers]:
    table = trace.migrations
    here = (table.process == process) & (table.device == device)
    for way, word, direction in ((Direction.H2D, "migrations in", IN), (Direction.D2H, "migrations out", OUT)):
        rows = np.flatnonzero(here & (table.direction == way))
        yield Transfers(
            name=word,
            direction=direction,
            mover=DRIVER,
            memory="managed",
            start=table.start[rows],
            end=table.end[rows],
            n_bytes=table.n_bytes[rows],
        )


def _of_rows(trace: Trace, rows: Ints, name: str, direction: str, moved: tuple[str, str]) -> Transfers:
    operations = trace.operations
    mover, memory = moved
    times = operations.start[rows], operations.end[rows]
    return Transfers(name, direction, mover, memory, *times, n_bytes=operations.n_bytes[rows])
