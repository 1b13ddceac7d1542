"""Writes into the trace what no trace says by itself: one NVTX mark, ``facts`` and JSON, in domain ``traceview``.

Call ``emit_facts`` once per process, after its first CUDA work and once its host buffers exist. Everything is read, and
nothing guessed: a fact that cannot be read is absent, and ``unavailable`` beside it gives the reason.

Keys of the JSON object:

- ``facts``: the number of this format, 1.
- ``devices``: one object for each GPU on which the process has a CUDA context: ``id`` (CUDA's number), ``uuid``,
  ``gpu_name``; ``pcie_generation``, ``pcie_width`` (lanes) of the link as it was when read, ``pcie_generation_max``,
  ``pcie_width_max`` of what GPU and slot can do; ``pcie_read``: ``under load`` or ``while idle``, since the link of an
  idle GPU may run at a lower generation than its copies will get; ``gpu_numa_node``; ``cpu_affinity`` (list of the CPUs
  near the GPU, such as ``0-47``); ``iommu`` (type of the GPU's IOMMU group, ``none`` without a group);
  ``unavailable``.
- ``driver_version``: of the GPU driver.
- ``process_cpu_affinity``: the CPUs that this process may use.
- ``page_bytes``: the system's base page size.
- ``host_buffers``: one object for each buffer that the program names: ``name``, ``bytes``, ``memory`` (how it was
  made, in the program's words: ``pinned``, ``registered``, ``pageable``), ``pinned`` (whether the driver knows it as
  page-locked), ``page_bytes``, ``transparent_huge_bytes``, ``pages_by_node`` (NUMA node, as text, to the number of
  pages looked at), ``unavailable``.
- ``unavailable``: {fact: reason}.

Beside these stand the keys that the program passes as ``extra``; ``python -m instrument run`` puts its parameters under
``workload``.
"""

from __future__ import annotations

import functools
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from instrument.cuda import driver
from instrument.errors import UnreadableError
from instrument.machine.gpu_facts import device_facts, load_nvml
from instrument.machine.host_pages import page_sizes, pages_by_node
from instrument.machine.readings import Readings
from instrument.naming import FACTS_PREFIX
from instrument.ranges import mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["FACTS_FORMAT", "HostBuffer", "collect_facts", "emit_facts", "pages_by_node"]

FACTS_FORMAT = 1
"""Number of the format that the module's docstring describes."""


@dataclass(frozen=True)
class HostBuffer:
    """A buffer in host memory to state facts about: its first address, its size, and how the program made it."""

    name: str
    address: int
    n_bytes: int
    memory: str

    def __post_init__(self) -> None:
        """Raise ValueError for what is no place in memory."""
        if self.address < 0 or self.n_bytes < 1:
            raise ValueError(
                f"buffer '{self.name}' of {self.n_bytes} bytes at {self.address}: it needs its address and its size"
            )


def emit_facts(extra: Mapping[str, object] | None = None, *, buffers: Sequence[HostBuffer] = ()) -> dict[str, object]:
    """Collect the facts of this process, write them into the trace as one mark, and return them.

    The keys of ``extra``, the program's own, stand beside the facts; what JSON cannot hold is written as its text.
    Raises ValueError when one of them is a fact that is read here.
    """
    facts = collect_facts(extra, buffers=buffers)
    mark(FACTS_PREFIX + json.dumps(facts, separators=(",", ":"), default=str))
    return facts


def collect_facts(
    extra: Mapping[str, object] | None = None, *, buffers: Sequence[HostBuffer] = ()
) -> dict[str, object]:
    """Return the facts of this process without writing a mark; raises ValueError as ``emit_facts`` does."""
    readings = Readings()
    readings.facts["facts"] = FACTS_FORMAT
    readings.take("devices", _devices)
    readings.take("driver_version", _driver_version)
    readings.take("process_cpu_affinity", lambda: cpu_list(os.sched_getaffinity(0)))
    readings.take("page_bytes", lambda: os.sysconf("SC_PAGE_SIZE"))
    if buffers:
        readings.facts["host_buffers"] = [buffer_facts(buffer) for buffer in buffers]
    found = readings.as_facts()
    taken = sorted((found.keys() | readings.unavailable.keys()) & (extra or {}).keys())
    if taken:
        raise ValueError(f"these keys are read from the machine, name yours otherwise: {', '.join(taken)}")
    return {**found, **(extra or {})}


def buffer_facts(buffer: HostBuffer) -> dict[str, object]:
    """Return the entry of ``host_buffers`` for ``buffer``."""
    readings = Readings()
    sizes = functools.cache(lambda: page_sizes(buffer.address, buffer.n_bytes))
    readings.take("pinned", lambda: driver.is_pinned(driver.load_driver(), buffer.address))
    readings.take("page_bytes", lambda: sizes()[0])
    readings.take("transparent_huge_bytes", lambda: sizes()[1])
    readings.take("pages_by_node", lambda: _by_text(pages_by_node(buffer.address, buffer.n_bytes)))
    return {"name": buffer.name, "bytes": buffer.n_bytes, "memory": buffer.memory, **readings.as_facts()}


def cpu_list(cpus: Iterable[int]) -> str:
    """Return CPU numbers the way the kernel writes them: ``{0, 1, 2, 5}`` becomes ``0-2,5``."""
    spans: list[list[int]] = []
    for cpu in sorted(cpus):
        if spans and cpu == spans[-1][1] + 1:
            spans[-1][1] = cpu
        else:
            spans.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def _devices() -> list[dict[str, object]]:
    used = driver.devices_in_use(driver.load_driver())
    nvml = load_nvml()
    return [device_facts(nvml, ordinal, gpu_uuid) for ordinal, gpu_uuid in used]


def _driver_version() -> str:
    nvml: Any = load_nvml()
    try:
        version = nvml.nvmlSystemGetDriverVersion()
    except nvml.NVMLError as error:
        raise UnreadableError(f"NVML: {error}") from error
    return version.decode() if isinstance(version, bytes) else str(version)


def _by_text(counts: Mapping[int, int]) -> dict[str, int]:
    return {str(node): pages for node, pages in counts.items()}
