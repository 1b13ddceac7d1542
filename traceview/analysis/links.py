"""How fast a device's host link can be at most: PCIe generations, what the capture or the user says, what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.analysis.places import on_device
from traceview.model import Direction, Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traceview.model import Trace

FACTS, OPTION, OBSERVED, TOPOLOGY = "facts", "option", "observed", "topology"
"""Where a ceiling is from: the captured facts, an option, the best large pinned copy here, ``nvidia-smi topo -m``."""

LARGE_BYTES = 16 << 20
"""A copy from this size on hides its fixed cost, so that its rate is the link's."""

_GT_PER_S = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
"""PCI Express Base Specification 6.0: giga-transfers per second and lane by generation"""
_ENCODING = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}
"""Share of the transfers that carry data: 8b/10b, 128b/130b, and 242 bytes of each 256-byte FLIT."""

FASTEST_PCIE = 64.0 * 16 * 242 / 256 / 8
"""GB/s of the fastest link there is (generation 6, 16 lanes): what goes faster is no PCIe."""

_NVLINK_GB_PER_S = (
    ("P100", 20.0),
    ("V100", 25.0),
    ("A100", 25.0),
    ("H100", 25.0),
    ("H200", 25.0),
    ("GH200", 25.0),
    ("B100", 50.0),
    ("B200", 50.0),
    ("B300", 50.0),
)
"""GB/s of one NVLink in one direction by what a GPU's name holds. Source: NVIDIA's data sheets and whitepapers."""


_MOST_LANES = 32


@dataclass(frozen=True)
class LinkOptions:
    """What the user says about the PCIe link to the devices."""

    gbps: float | None = None
    """the most that it carries in one direction, GB/s"""
    pcie: tuple[int, int] | None = None
    """generation and lanes"""


@dataclass(frozen=True)
class Ceiling:
    """The most that the host link of a device can carry in one direction, GB/s, and where that number is from."""

    device: int
    rate: float
    origin: str
    """``facts``, ``option`` or ``observed``"""
    source: str
    """the same in words"""


def pcie_rate(generation: int, width: int) -> float | None:
    """Return GB/s of a PCIe link in one direction after its encoding, None for a generation that is not known.

    Generation 5 with 16 lanes: 32 * 16 * 128/130 / 8 = 63.0.
    """
    if generation not in _GT_PER_S or not 0 < width <= _MOST_LANES:
        return None
    return _GT_PER_S[generation] * width * _ENCODING[generation] / 8


def nvlink_rate(gpu_name: str | None, links: int) -> float | None:
    """Return GB/s in one direction of so many NVLinks of a GPU, None for a GPU whose links are not known."""
    known = (rate for part, rate in _NVLINK_GB_PER_S if part in (gpu_name or ""))
    each = next(known, None)
    return None if each is None else each * links


def link_ceilings(trace: Trace, options: LinkOptions | None = None) -> tuple[Ceiling, ...]:
    """Return the ceiling of each device's host link.

    From the captured facts, else from the options, else the best large pinned copy of the trace, which the link's own
    ceiling is above. No entry for a device of which none is known.
    """
    found = (stated_ceiling(trace, device, options) or best_copy(trace, device) for device in trace.capture.devices)
    return tuple(ceiling for ceiling in found if ceiling)


def stated_ceiling(trace: Trace, device: int, options: LinkOptions | None = None) -> Ceiling | None:
    """Return what the capture's facts, else the options, say of a device's link; None where neither does."""
    return next(_by_facts(trace.capture.facts, device), None) or _by_options(device, options or LinkOptions())


def device_facts(facts: Mapping[str, Any] | None, device: int) -> Mapping[str, Any]:
    """Return what the captured facts say of one device, empty where they say nothing."""
    entries = facts.get("devices") if facts else None
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("id") == device:
            return entry
    return {}


def degraded_link(facts: Mapping[str, Any] | None, device: int) -> str | None:
    """Return in words how a device's link is below what GPU and slot can do, None where it is not or nobody knows."""
    now, most = _generation_and_width(facts, device)
    if now is None or most is None or (now[0] >= most[0] and now[1] >= most[1]):
        return None
    return f"PCIe {now[0]}.0 x{now[1]}, though GPU and slot can do {most[0]}.0 x{most[1]}"


def possible_rate(facts: Mapping[str, Any] | None, device: int) -> float | None:
    """Return the GB/s that a device's link could carry by what GPU and slot can do, None where facts do not tell."""
    most = _generation_and_width(facts, device)[1]
    return pcie_rate(*most) if most else None


_Link = tuple[int, int]
"""generation and lanes"""


def _generation_and_width(facts: Mapping[str, Any] | None, device: int) -> tuple[_Link | None, _Link | None]:
    """Return a device's link as it is while it copies, and at its most; None for what the facts do not tell."""
    entry = device_facts(facts, device)
    generation, width = entry.get("pcie_generation"), entry.get("pcie_width")
    most_generation, most_width = entry.get("pcie_generation_max"), entry.get("pcie_width_max")
    if entry.get("pcie_read") == "while idle":
        # an idle GPU slows its link down but keeps its lanes; what its copies get is the most that the link can do
        generation = generation if most_generation is None else most_generation
    return _as_link(generation, width), _as_link(most_generation, most_width)


def _as_link(generation: object, width: object) -> _Link | None:
    return (generation, width) if isinstance(generation, int) and isinstance(width, int) else None


def _by_facts(facts: Mapping[str, Any] | None, device: int) -> Iterator[Ceiling]:
    now, _ = _generation_and_width(facts, device)
    rate = pcie_rate(*now) if now else None
    if now and rate:
        yield Ceiling(device, rate, FACTS, f"PCIe {now[0]}.0 x{now[1]}, as captured")


def _by_options(device: int, options: LinkOptions) -> Ceiling | None:
    if options.gbps is not None:
        return Ceiling(device, options.gbps, OPTION, "as given with --link-gbps")
    rate = pcie_rate(*options.pcie) if options.pcie else None
    if rate is None or options.pcie is None:
        return None
    return Ceiling(device, rate, OPTION, f"PCIe {options.pcie[0]}.0 x{options.pcie[1]}, as given with --pcie")


def best_copy(trace: Trace, device: int) -> Ceiling | None:
    """Return the best rate of a device's large pinned copies in this trace, None where it has none."""
    row = best_copy_row(trace, device)
    if row is None:
        return None
    rate = trace.operations.n_bytes[row] / (trace.operations.end[row] - trace.operations.start[row])
    return Ceiling(device, float(rate), OBSERVED, "the best large pinned copy of this trace")


def best_copy_row(trace: Trace, device: int) -> int | None:
    """Return the row of ``Trace.operations`` of a device's fastest large pinned copy, None where it has none."""
    operations = trace.operations
    large = operations.n_bytes >= LARGE_BYTES  # the pieces of a batch are looked at below: most rows are none
    linked = (operations.direction == int(Direction.H2D)) | (operations.direction == int(Direction.D2H))
    rows = np.flatnonzero(large & linked & (operations.memory == int(Memory.PINNED)) & on_device(trace, device))
    pieces = np.maximum(operations.pieces[rows], 1).astype(np.int64)
    rows = rows[(operations.n_bytes[rows] >= LARGE_BYTES * pieces) & (operations.end[rows] > operations.start[rows])]
    if not len(rows):
        return None
    rate = operations.n_bytes[rows] / (operations.end[rows] - operations.start[rows])
    return int(rows[rate.argmax()])
