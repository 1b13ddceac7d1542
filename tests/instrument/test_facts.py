"""Facts are read, or absent with a reason; from recorded inputs, and from this machine where it can tell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from recording_domain import RecordingDomain, listening, touched_memory

from instrument import facts
from instrument.cuda import driver
from instrument.errors import UnreadableError
from instrument.facts import HostBuffer
from instrument.machine.gpu_facts import device_facts
from instrument.machine.readings import Readings

__all__ = ["listening", "touched_memory"]

UUID = "GPU-01020304-0506-0708-090a-0b0c0d0e0f10"


class Nvml:
    """Answers as NVML does for one GPU; ``fails`` names calls that it refuses."""

    class NVMLError(Exception):
        pass

    def __init__(self, *fails: str, busy: int = 0) -> None:
        self.fails = fails
        self.busy = busy

    def __getattr__(self, name: str) -> Any:
        answers = {
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetName": b"NVIDIA H200",
            "nvmlDeviceGetCurrPcieLinkGeneration": 1,
            "nvmlDeviceGetCurrPcieLinkWidth": 16,
            "nvmlDeviceGetMaxPcieLinkGeneration": 5,
            "nvmlDeviceGetMaxPcieLinkWidth": 16,
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=self.busy, memory=0),
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId="00000000:AB:00.0"),
        }

        def call(*arguments: object) -> Any:
            if name in self.fails:
                raise self.NVMLError("Not Supported")
            return answers[name]

        return call


def make_sysfs(root: Path, node: str = "1", group: str | None = "DMA-FQ") -> Path:
    device = root / "bus/pci/devices/0000:ab:00.0"
    device.mkdir(parents=True)
    (device / "numa_node").write_text(f"{node}\n")
    (device / "local_cpulist").write_text("48-95,144-191\n")
    if group is not None:
        folder = root / "kernel/iommu_groups/17"
        folder.mkdir(parents=True)
        (folder / "type").write_text(f"{group}\n")
        (device / "iommu_group").symlink_to(folder)
    return root


def test_everything_about_a_gpu(tmp_path: Path) -> None:
    """The link of an idle GPU runs slower than it can, so the state it was read in stands beside it."""
    assert device_facts(Nvml(), 2, UUID, make_sysfs(tmp_path)) == {
        "id": 2,
        "uuid": UUID,
        "gpu_name": "NVIDIA H200",
        "pcie_generation": 1,
        "pcie_width": 16,
        "pcie_generation_max": 5,
        "pcie_width_max": 16,
        "pcie_read": "while idle",
        "gpu_numa_node": 1,
        "cpu_affinity": "48-95,144-191",
        "iommu": "DMA-FQ",
    }
    assert device_facts(Nvml(busy=40), 0, UUID, tmp_path)["pcie_read"] == "under load"


def test_what_a_gpu_does_not_tell_is_absent_with_a_reason(tmp_path: Path) -> None:
    found = device_facts(Nvml("nvmlDeviceGetCurrPcieLinkWidth"), 0, UUID, make_sysfs(tmp_path, node="-1", group=None))
    assert "pcie_width" not in found
    assert "gpu_numa_node" not in found
    assert found["iommu"] == "none"
    assert found["unavailable"] == {
        "pcie_width": "NVML: Not Supported",
        "gpu_numa_node": "the kernel knows no NUMA node for the GPU",
    }


def test_a_container_without_the_pci_device_in_sysfs(tmp_path: Path) -> None:
    found: Any = device_facts(Nvml(), 0, UUID, tmp_path)
    assert set(found["unavailable"]) == {"gpu_numa_node", "cpu_affinity", "iommu"}
    assert set(found["unavailable"].values()) == {"the GPU's PCI device is not visible in sysfs"}


def test_a_gpu_that_nvml_does_not_know(tmp_path: Path) -> None:
    found = device_facts(Nvml("nvmlDeviceGetHandleByUUID"), 0, UUID, tmp_path)
    assert found == {"id": 0, "uuid": UUID, "unavailable": {"nvml": "NVML: Not Supported"}}


class Driver:
    """Answers as libcuda does for two devices, the second in use; ``status`` is what the first call returns."""

    def __init__(self, status: int = 0, active: tuple[int, ...] = (0, 1), pointer: tuple[int, int] = (0, 1)) -> None:
        self.status = status
        self.active = active
        self.pointer = pointer

    def cuDeviceGetCount(self, count: Any) -> int:  # noqa: N802
        count._obj.value = len(self.active)
        return self.status

    def cuDeviceGet(self, device: Any, ordinal: int) -> int:  # noqa: N802
        device._obj.value = ordinal
        return 0

    def cuDevicePrimaryCtxGetState(self, device: Any, flags: Any, active: Any) -> int:  # noqa: N802
        active._obj.value = self.active[device.value]
        return 0

    def cuDeviceGetUuid(self, raw: Any, device: Any) -> int:  # noqa: N802
        raw._obj[:] = range(1, 17)
        return 0

    def cuPointerGetAttribute(self, kind: Any, attribute: int, address: Any) -> int:  # noqa: N802
        kind._obj.value = self.pointer[1]
        return self.pointer[0]


def test_the_devices_in_use_by_cuda_number_and_uuid() -> None:
    assert driver.devices_in_use(Driver()) == [(1, UUID)]
    assert uuid.UUID(UUID.removeprefix("GPU-")).bytes == bytes(range(1, 17))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Driver(status=3), "has not initialised CUDA yet"),
        (Driver(status=999), "cuDeviceGetCount returned CUDA error 999"),
        (Driver(active=(0, 0)), "has no CUDA context yet"),
    ],
)
def test_why_no_device_is_known(answer: Driver, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        driver.devices_in_use(answer)


def test_pinned_memory_is_what_the_driver_knows_as_host_memory() -> None:
    assert driver.is_pinned(Driver(pointer=(0, 1)), 4096)
    assert not driver.is_pinned(Driver(pointer=(0, 2)), 4096)
    assert not driver.is_pinned(Driver(pointer=(1, 0)), 4096)
    with pytest.raises(UnreadableError, match="cuPointerGetAttribute returned CUDA error 201"):
        driver.is_pinned(Driver(pointer=(201, 0)), 4096)


def test_one_mark_carries_the_facts_and_the_programs_own(
    listening: RecordingDomain, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, touched_memory: tuple[int, int]
) -> None:
    sysfs = make_sysfs(tmp_path)
    monkeypatch.setattr(driver, "load_driver", Driver)
    monkeypatch.setattr(facts, "load_nvml", Nvml)
    monkeypatch.setattr(facts, "device_facts", lambda nvml, *device: device_facts(nvml, *device, sysfs))
    monkeypatch.setattr(facts, "_driver_version", lambda: "580.1")
    written = facts.emit_facts({"workload": {"layers": 8}}, buffers=[HostBuffer("pool", *touched_memory, "registered")])
    (mark,) = listening.log
    assert mark.startswith("!facts {")
    assert ": " not in mark.split('"NVIDIA H200"')[0]
    assert json.loads(mark.removeprefix("!facts ")) == written
    assert written["facts"] == facts.FACTS_FORMAT
    assert written["workload"] == {"layers": 8}
    assert written["driver_version"] == "580.1"
    (device,) = written["devices"]  # type: ignore[attr-defined]
    assert (device["id"], device["gpu_numa_node"]) == (1, 1)
    (pool,) = written["host_buffers"]  # type: ignore[attr-defined]
    assert {"name": "pool", "bytes": touched_memory[1], "memory": "registered", "pinned": True}.items() <= pool.items()
    assert "unavailable" not in written


@pytest.mark.usefixtures("listening")
def test_values_that_json_cannot_hold_are_written_as_text_and_taken_keys_are_refused() -> None:
    assert facts.emit_facts({"workload": {"folder": Path("/data")}})["workload"] == {"folder": Path("/data")}
    with pytest.raises(ValueError, match="name yours otherwise: page_bytes"):
        facts.emit_facts({"page_bytes": 1})


@pytest.mark.usefixtures("listening")
def test_a_key_of_a_fact_is_refused_also_where_the_machine_does_not_tell_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a program that works here would fail on the next machine, which tells."""
    monkeypatch.setattr(driver, "load_driver", lambda: 1 / 0)
    with pytest.raises(ValueError, match="name yours otherwise: devices"):
        facts.emit_facts({"devices": 2})


@pytest.mark.parametrize(("address", "n_bytes"), [(4096, 0), (4096, -1), (-1, 8)])
def test_a_buffer_has_an_address_and_a_size(address: int, n_bytes: int) -> None:
    with pytest.raises(ValueError, match="it needs its address and its size"):
        HostBuffer("pool", address, n_bytes, "pinned")


def test_an_answer_that_nobody_expected_is_a_reason_and_no_end_of_the_program(
    monkeypatch: pytest.MonkeyPatch, touched_memory: tuple[int, int]
) -> None:
    monkeypatch.setattr(driver, "load_driver", object)
    monkeypatch.setattr(facts, "load_nvml", object)
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(facts, "page_sizes", lambda *_: int("no number"))
    found: Any = facts.collect_facts(buffers=[HostBuffer("pool", *touched_memory, "pageable")])
    assert found.keys() == {"facts", "page_bytes", "host_buffers", "unavailable"}
    assert found["unavailable"]["process_cpu_affinity"].startswith("AttributeError: ")
    assert found["host_buffers"][0]["unavailable"]["page_bytes"].startswith("ValueError: invalid literal")


def test_a_machine_without_a_gpu_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_driver() -> None:
        raise UnreadableError("this machine has no CUDA driver (libcuda.so.1)")

    monkeypatch.setattr(driver, "load_driver", no_driver)
    found: Any = facts.collect_facts()
    assert "devices" not in found
    assert found["unavailable"]["devices"] == "this machine has no CUDA driver (libcuda.so.1)"
    assert found["page_bytes"] == os.sysconf("SC_PAGE_SIZE")
    assert "host_buffers" not in found


def test_cpu_numbers_are_written_as_the_kernel_writes_them() -> None:
    assert facts.cpu_list({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"
    assert facts.cpu_list([]) == ""


def test_readings_keep_the_reason_in_one_line() -> None:
    readings = Readings()

    def fail() -> None:
        raise UnreadableError("first\n  second")

    readings.take("here", lambda: 1)
    readings.take("gone", fail)
    assert readings.as_facts() == {"here": 1, "unavailable": {"gone": "first second"}}


@pytest.mark.gpu
@pytest.mark.torch
def test_the_facts_of_a_real_gpu() -> None:
    """In a process of its own: before CUDA is initialised the devices are unknown, afterwards all is read."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("there is no CUDA device")
    program = """
        import json, torch
        from instrument import facts
        before = facts.collect_facts()
        held = torch.ones(1, device="cuda")
        pinned = torch.ones(1 << 22, pin_memory=True)
        pageable = torch.ones(1 << 22)
        buffers = [facts.HostBuffer(name, one.data_ptr(), one.numel() * 4, name)
                   for name, one in (("pinned", pinned), ("pageable", pageable))]
        print(json.dumps([before, facts.collect_facts(buffers=buffers)]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=True
    )
    before, after = json.loads(done.stdout)
    assert "devices" not in before
    assert "not initialised" in before["unavailable"]["devices"]
    (device,) = after["devices"]
    assert device["gpu_name"] == torch.cuda.get_device_name(0)
    assert device["uuid"] == f"GPU-{torch.cuda.get_device_properties(0).uuid}"
    assert device["pcie_generation"] <= device["pcie_generation_max"]
    pinned, pageable = after["host_buffers"]
    assert (pinned["pinned"], pageable["pinned"]) == (True, False)
    assert sum(pageable["pages_by_node"].values()) > 0
