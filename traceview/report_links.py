"""The part of the report that tells who used which link: frozen plain data with the keys of the JSON report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Lane:
    """A class of transfers and the traffic it ran beside; ``beside`` is the JSON key ``with``."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"n_bytes", "rate_alone", "rate_together", "beside"})

    transfer_class: str
    direction: str
    """``in`` or ``out``, seen from the device; ``host``: between storage and host memory"""
    mover: str
    n_bytes: int | None
    """None where nothing says how much a mover moved"""
    rate_alone: float | None
    """of the transfers beside which nothing ran that could slow them; None where there are too few"""
    rate_together: float | None
    """of those that ran beside ``beside`` and nothing else that could slow them"""
    beside: str | None
    """class of the other traffic on the device; None: the class by itself"""
    shared_lane: bool
    """whether both should use one link in one direction"""
    verdict: str
    process: int = 0
    device: int = 0
    memory: str = "unknown"
    """memory of the host side"""
    transfers: int = 0
    busy_ns: int = 0
    rate: float | None = None
    """while busy, whatever ran beside it"""
    together_ns: int | None = None
    """how long both ran at the same time"""
    slowdown: float | None = None
    """share of the rate alone that is lost beside the other"""
    links: tuple[str, ...] = ()
    """the links that it passes, as predicted"""
    path_from: str = "presumed"
    """what tells the links: ``facts``, ``topology``, ``rate`` (no other is as fast), or ``presumed``"""
    ceiling: float | None = None
    """GB/s of the narrowest link"""
    ceiling_from: str | None = None
    """``facts``, ``option``, ``topology``, or ``observed``: the best large pinned copy of the trace"""


@dataclass(frozen=True)
class Inbound:
    """What came into a device over PCIe during a forward, and how much of it no transfer of the trace explains."""

    forward: int
    process: int
    device: int
    received_bytes: int
    """as the GPU's own counter measured it, protocol overhead included"""
    explained_bytes: int
    """moved by the transfers of the trace"""
    overhead_bytes: int
    """of the rest, as much as the protocol can have added to what is explained"""
    unexplained_bytes: int
    """what is left: RDMA receive, or copies that nobody traced"""
    ceiling: float
    """GB/s of the link, by which the counter's percent became bytes"""
    ceiling_from: str


@dataclass(frozen=True)
class NicTraffic:
    """RDMA traffic of one NIC port and direction in the whole trace; ``n_bytes`` is the JSON key ``bytes``."""

    nic: str
    port: int
    direction: str
    """``receive`` or ``send``"""
    n_bytes: int
    busy_ns: int
    """samples in which it carried more than chatter"""
    rate: float | None
    """GB/s while busy"""
    peak_rate: float


@dataclass(frozen=True)
class Stage:
    """One step of the way from storage to the device in one forward; ``n_bytes`` is the JSON key ``bytes``."""

    stage: str
    """``storage read``, ``stage``, ``h2d`` or ``compute``"""
    busy_ns: int
    n_bytes: int | None
    hidden_ns: int
    """how much of it runs beside another step"""
    under_compute_ns: int
    """how much of it runs under compute"""


@dataclass(frozen=True)
class Storage:
    """The way from storage to one device in one forward."""

    forward: int
    process: int
    device: int
    bounded_by: str
    """the step that takes longest"""
    straight: bool
    """whether storage wrote straight into the registered pool: nothing was staged"""
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Answer:
    """An answer to one of the field's questions about a layered load."""

    about: str
    """``path``, ``direction`` or ``mover``"""
    question: str
    answer: str
    """``yes``, ``no`` or ``unknown``; yes is what one hopes for"""
    evidence: str
    fix: str
    """the flag or command that would tell, empty where the answer is known"""
