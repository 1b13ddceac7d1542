"""Over which links a transfer goes, predicted: a path of links, each with two directions that do not hinder each other.

::

    pinned host to device     DRAM[n] out · RC[n] down · GPU 0 in            remote memory: a socket link between
    pageable                  CPU copy, then the same
    device to host            GPU 0 out · RC[n] up · DRAM[n] in
    peer copy                 GPU 1 NVLink out · GPU 0 NVLink in             or over PCIe: GPU 1 out · GPU 0 in
    RDMA receive              NIC · GPU 0 in
    reading from storage      storage out · DRAM[n] in
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from instrument.naming import STORAGE_READ
from traceview.analysis.links import FACTS, FASTEST_PCIE, OBSERVED, TOPOLOGY, device_facts, nvlink_rate
from traceview.analysis.transfers import CPU, HOST, IN, NIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.analysis.links import Ceiling
    from traceview.analysis.topology import Topology
    from traceview.analysis.transfers import Transfers
    from traceview.model import Trace

PRESUMED, RATE = "presumed", "rate"
"""Where a path is from when neither facts nor topology tell: what is usual, or the only one that is fast enough."""

PROOF_MARGIN = 1.25
"""How far above the best host copy a rate must be to prove that it does not use PCIe; the link is at most that fast."""

_MOST_PAGES = 0.9
"""Share of the pages that must lie on one NUMA node for the buffers to count as lying there."""


@dataclass(frozen=True)
class Link:
    """One direction of one link."""

    name: str
    way: str

    def __str__(self) -> str:
        """Return the link as it is written: ``GPU 0 in``."""
        return f"{self.name} {self.way}"


@dataclass(frozen=True)
class Path:
    """The links of a transfer in the order in which bytes pass them, and what the narrowest of them carries."""

    links: tuple[Link, ...]
    origin: str
    """``facts``, ``topology``, ``rate`` or ``presumed``"""
    ceiling: float | None
    """GB/s, None where it is not known"""
    ceiling_from: str | None

    def shares(self, other: Path) -> bool:
        """Return whether both use a link of the device in one direction; host memory is wide enough for many."""
        return bool(self._device_links & other._device_links)

    def opposes(self, other: Path) -> bool:
        """Return whether both use a link of the device in opposite directions."""
        ours = {link.name: link.way for link in self._device_links}
        return any(ours.get(link.name, link.way) != link.way for link in other._device_links)

    @property
    def _device_links(self) -> set[Link]:
        return {link for link in self.links if link.name.startswith("GPU")}


@dataclass(frozen=True)
class Machine:
    """What is known of the wiring of one device."""

    trace: Trace
    device: int
    topology: Topology | None
    ceiling: Ceiling | None

    @property
    def node(self) -> int | None:
        """Return the NUMA node of the device, from the facts, else from the topology."""
        return gpu_node(self.trace.capture.facts, self.device, self.topology)

    @property
    def memory_node(self) -> int | None:
        """Return the NUMA node on which the pinned host buffers lie, None where that is not known or not one node."""
        pages = pages_by_node(self.trace.capture.facts)
        node = max(pages, key=lambda one: pages[one], default=None)
        return node if node is not None and pages[node] >= _MOST_PAGES * sum(pages.values()) else None


def gpu_node(facts: Mapping[str, Any] | None, device: int, topology: Topology | None = None) -> int | None:
    """Return the NUMA node of a device as the facts say, else the topology; None where neither does."""
    stated = device_facts(facts, device).get("gpu_numa_node")
    if isinstance(stated, int) and stated >= 0:
        return stated
    return topology.numa.get(f"GPU{device}") if topology else None


def pages_by_node(facts: Mapping[str, Any] | None) -> dict[int, int]:
    """Return how many pages of the pinned host buffers the facts saw on each NUMA node."""
    total: dict[int, int] = {}
    buffers = facts.get("host_buffers") if facts else None
    for buffer in buffers if isinstance(buffers, list) else ():
        pages = buffer.get("pages_by_node") if isinstance(buffer, dict) and buffer.get("pinned") else None
        for node, count in pages.items() if isinstance(pages, dict) else ():
            if str(node).isdecimal() and len(str(node)) < 6 and isinstance(count, int):
                total[int(node)] = total.get(int(node), 0) + count
    return total


def find_path(transfers: Transfers, machine: Machine, best_rate: float | None) -> Path:
    """Return the path of a class of transfers; ``best_rate`` is the fastest of them in GB/s, None where unknown."""
    if transfers.direction == HOST:
        source = "storage" if transfers.name == STORAGE_READ else _numbered("DRAM", machine.node)
        target = Link(_numbered("DRAM", machine.node), "in")
        return Path((Link(source, "out"), target), PRESUMED, None, None)
    if transfers.mover == NIC:
        return _nic_path(transfers, machine)
    if transfers.name.startswith("p2p"):
        return _peer_path(transfers, machine, best_rate)
    return _host_path(transfers, machine)


def _host_path(transfers: Transfers, machine: Machine) -> Path:
    """Return the path between host memory and the device."""
    node = machine.node
    # the buffers' pages are those of pinned memory; of other memory nobody has told
    memory = machine.memory_node if transfers.memory == "pinned" else None
    inward = transfers.direction == IN
    links = [Link(_numbered("DRAM", memory if memory is not None else node), "out" if inward else "in")]
    if node is not None and memory is not None and node != memory:
        links.append(Link("socket link", f"{memory} to {node}" if inward else f"{node} to {memory}"))
    links.append(Link(_numbered("RC", node), "down" if inward else "up"))
    links.append(Link(f"GPU {machine.device}", "in" if inward else "out"))
    if not inward:
        links.reverse()
    if transfers.mover == CPU:
        links.insert(0 if inward else len(links), Link("CPU", "copy"))
    told = FACTS if memory is not None and node is not None else PRESUMED
    return _over_pcie(links, told, machine)


def _peer_path(transfers: Transfers, machine: Machine, best_rate: float | None) -> Path:
    """Return the path between two devices: NVLink where the topology or the rate says so, else PCIe."""
    peer = transfers.peer
    links = 0 if machine.topology is None or peer is None else machine.topology.nvlinks(machine.device, peer)
    proved = best_rate is not None and best_rate > _fastest_pcie(machine.ceiling)
    ends = [f"GPU {'?' if peer is None else peer}", f"GPU {machine.device}"]
    source, target = ends if transfers.direction == IN else reversed(ends)
    if links or proved:
        path = (Link(f"{source} NVLink", "out"), Link(f"{target} NVLink", "in"))
        rate = nvlink_rate(machine.trace.capture.devices.get(machine.device), links) if links else None
        return Path(path, TOPOLOGY if links else RATE, rate, TOPOLOGY if rate else None)
    known = machine.topology is not None and peer is not None
    relation = machine.topology.between(*(f"GPU{one}" for one in (machine.device, peer))) if machine.topology else None
    through = [] if relation in ("PIX", "PXB") else [Link(_numbered("RC", machine.node), "between GPUs")]
    pcie = [Link(source, "out"), *through, Link(target, "in")]
    return _over_pcie(pcie, TOPOLOGY if known and relation else PRESUMED, machine)


def _nic_path(transfers: Transfers, machine: Machine) -> Path:
    nic, gpu = f"NIC {transfers.nic}", f"GPU {machine.device}"
    inward = transfers.direction == IN
    links = [Link(nic, "in"), Link(gpu, "in")] if inward else [Link(gpu, "out"), Link(nic, "out")]
    return _over_pcie(links, TOPOLOGY if machine.topology else PRESUMED, machine)


def _over_pcie(links: list[Link], origin: str, machine: Machine) -> Path:
    ceiling = machine.ceiling
    return Path(tuple(links), origin, ceiling.rate if ceiling else None, ceiling.origin if ceiling else None)


def _fastest_pcie(ceiling: Ceiling | None) -> float:
    """Return the rate above which a transfer cannot have used the device's PCIe link."""
    if ceiling is None:
        return FASTEST_PCIE
    return ceiling.rate * PROOF_MARGIN if ceiling.origin == OBSERVED else ceiling.rate


def _numbered(word: str, node: int | None) -> str:
    return word if node is None else f"{word}[{node}]"
