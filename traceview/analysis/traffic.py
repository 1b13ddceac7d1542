"""All traffic of each device by class, with the links that it uses and how fast it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traceview.analysis.inbound import metered_moves
from traceview.analysis.links import LinkOptions, link_ceilings
from traceview.analysis.network import rdma_transfers
from traceview.analysis.paths import Machine, Path, find_path
from traceview.analysis.roles import MOVER_KERNEL, is_mover
from traceview.analysis.sm_movers import UNKNOWN_BYTES, find_sm_moves
from traceview.analysis.storage import storage_transfers
from traceview.analysis.transfers import device_transfers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.forwards import Forward
    from traceview.analysis.sm_movers import SmMoves
    from traceview.analysis.topology import Topology
    from traceview.analysis.transfers import Transfers
    from traceview.intervals import Intervals
    from traceview.model import Trace


@dataclass(frozen=True)
class MachineOptions:
    """What the user says about the machine."""

    link: LinkOptions = field(default_factory=LinkOptions)
    topology: Topology | None = None


@dataclass(frozen=True, eq=False)
class Traffic:
    """A class of transfers with what was found out about it."""

    place: tuple[int, int]
    """process and device"""
    transfers: Transfers
    path: Path
    busy: Intervals
    rate: float | None
    """GB/s while busy, whatever ran beside it; None where bytes are unknown"""

    @property
    def enters_over_pcie(self) -> bool:
        """Return whether it comes into the device over the device's PCIe link."""
        return any(link.name == f"GPU {self.place[1]}" and link.way == "in" for link in self.path.links)


def find_traffic(
    trace: Trace, forwards: Sequence[Forward], machine: MachineOptions | None = None, mover_kernel: str = MOVER_KERNEL
) -> tuple[Traffic, ...]:
    """Return the classes of transfers of each process and device: copies, peer copies, loading kernels, RDMA, storage.

    The bytes of a loading kernel are those that its range says, else those that the device's counter saw, where GPU
    metrics were asked for.
    """
    machine = machine or MachineOptions()
    mover = is_mover(trace, mover_kernel)
    moves = find_sm_moves(trace, forwards, mover)
    traffic = _classes(trace, moves, machine)
    if trace.links and (moves.n_bytes == UNKNOWN_BYTES).any():
        traffic = _classes(trace, metered_moves(trace, moves, traffic, machine.link), machine)
    return traffic


def _classes(trace: Trace, moves: SmMoves, options: MachineOptions) -> tuple[Traffic, ...]:
    ceilings = {ceiling.device: ceiling for ceiling in link_ceilings(trace, options.link)}
    remote = rdma_transfers(trace, options.topology)
    # a peer copy stands on its source's stream, so its target may have no stream of its own
    processes = sorted({stream.process for stream in trace.streams} | set(trace.migrations.process.tolist()))
    found = []
    for process in processes:
        for device in trace.capture.devices:
            machine = Machine(trace, device, options.topology, ceilings.get(device))
            own = device_transfers(trace, process, device, moves)
            if own:
                own += tuple(transfers for place, transfers in remote if place == device)
                own += storage_transfers(trace, process)
            found += [_traffic((process, device), transfers, machine) for transfers in own]
    return tuple(found)


def _traffic(place: tuple[int, int], transfers: Transfers, machine: Machine) -> Traffic:
    busy, n_bytes = transfers.busy, transfers.total_bytes
    rate = n_bytes / busy.length if n_bytes and busy.length else None
    return Traffic(place, transfers, find_path(transfers, machine, rate), busy, rate)
