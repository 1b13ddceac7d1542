"""Reads what a trace does not say about a GPU: its PCIe link, its NUMA node, the CPUs near it, its IOMMU."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instrument.errors import UnreadableError
from instrument.machine.readings import Readings

if TYPE_CHECKING:
    from collections.abc import Callable


def load_nvml() -> Any:
    """Return the initialised ``pynvml`` module. Raises UnreadableError with the reason when there is none."""
    try:
        import pynvml
    except ImportError as error:
        raise UnreadableError("nvidia-ml-py is missing: python -m pip install nvidia-ml-py") from error
    _nvml(pynvml, pynvml.nvmlInit)
    return pynvml


def device_facts(nvml: Any, ordinal: int, gpu_uuid: str, sysfs: Path = Path("/sys")) -> dict[str, object]:
    """Return the facts of one GPU, by the keys that ``facts.py`` documents for an entry of ``devices``.

    ``ordinal`` is CUDA's number of the device, ``gpu_uuid`` its UUID as NVML writes it, ``sysfs`` the root of sysfs.
    """
    readings = Readings()
    try:
        handle = _nvml(nvml, nvml.nvmlDeviceGetHandleByUUID, gpu_uuid)
    except UnreadableError as error:
        readings.unavailable["nvml"] = str(error)
    else:
        _take_link(readings, nvml, handle)
        _take_placement(readings, nvml, handle, sysfs)
    return {"id": ordinal, "uuid": gpu_uuid, **readings.as_facts()}


def _take_link(readings: Readings, nvml: Any, handle: Any) -> None:
    reads = {
        "gpu_name": nvml.nvmlDeviceGetName,
        "pcie_generation": nvml.nvmlDeviceGetCurrPcieLinkGeneration,
        "pcie_width": nvml.nvmlDeviceGetCurrPcieLinkWidth,
        "pcie_generation_max": nvml.nvmlDeviceGetMaxPcieLinkGeneration,
        "pcie_width_max": nvml.nvmlDeviceGetMaxPcieLinkWidth,
    }
    for key, read in reads.items():
        readings.take(key, functools.partial(_nvml, nvml, read, handle))
    readings.take("pcie_read", lambda: _pcie_read(nvml, handle))


def _pcie_read(nvml: Any, handle: Any) -> str:
    """Say in which state the link was read: an idle GPU may slow its link down, and wake it with the next copy."""
    use = _nvml(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
    return "under load" if use.gpu or use.memory else "while idle"


def _take_placement(readings: Readings, nvml: Any, handle: Any, sysfs: Path) -> None:
    def device() -> Path:
        return _pci_folder(nvml, handle, sysfs)

    readings.take("gpu_numa_node", lambda: _numa_node(device()))
    readings.take("cpu_affinity", lambda: _line(device() / "local_cpulist"))
    readings.take("iommu", lambda: _iommu(device(), sysfs))


def _pci_folder(nvml: Any, handle: Any, sysfs: Path) -> Path:
    bus_id = _nvml(nvml, nvml.nvmlDeviceGetPciInfo, handle).busId
    text = bus_id.decode() if isinstance(bus_id, bytes) else str(bus_id)
    # NVML writes the PCI domain with eight digits, sysfs with four
    domain, rest = text.lower().split(":", 1)
    folder = sysfs / "bus/pci/devices" / f"{int(domain, 16):04x}:{rest}"
    if not folder.is_dir():
        raise UnreadableError("the GPU's PCI device is not visible in sysfs")
    return folder


def _numa_node(device: Path) -> int:
    node = int(_line(device / "numa_node"))
    if node < 0:
        raise UnreadableError("the kernel knows no NUMA node for the GPU")
    return node


def _iommu(device: Path, sysfs: Path) -> str:
    """Return the type of the GPU's IOMMU group (``identity``, ``DMA``, ``DMA-FQ``), or ``none`` without a group."""
    group = device / "iommu_group"
    if not group.exists():
        return "none"
    return _line(sysfs / "kernel/iommu_groups" / group.resolve().name / "type")


def _line(path: Path) -> str:
    try:
        text = path.read_text().strip()
    except OSError as error:
        raise UnreadableError(f"{path.name}: {error.strerror}") from error
    if not text:
        raise UnreadableError(f"{path.name} is empty")
    return text


def _nvml(nvml: Any, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        result = call(*arguments)
    except nvml.NVMLError as error:
        raise UnreadableError(f"NVML: {error}") from error
    return result.decode() if isinstance(result, bytes) else result
