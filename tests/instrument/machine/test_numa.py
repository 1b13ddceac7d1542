"""Which NUMA node memory is bound to, and where its pages are."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np
import pytest

from instrument.errors import InstrumentError
from instrument.machine import numa

if TYPE_CHECKING:
    from pathlib import Path

GPU = "0000:1b:00.0"


def machine(root: Path, online: str, gpu_node: int | None) -> Path:
    """Write the part of sysfs that tells about nodes."""
    nodes = root / "devices/system/node"
    nodes.mkdir(parents=True)
    (nodes / "online").write_text(online + "\n")
    if gpu_node is not None:
        device = root / "bus/pci/devices" / GPU
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{gpu_node}\n")
    return root


@pytest.mark.parametrize(
    ("online", "nodes"), [("0", (0,)), ("0-1", (0, 1)), ("0,2-3", (0, 2, 3)), ("0-1,4", (0, 1, 4))]
)
def test_online_nodes_are_listed(monkeypatch, tmp_path, online, nodes) -> None:
    monkeypatch.setattr(numa, "SYSFS", machine(tmp_path, online, None))
    assert numa.online_nodes() == nodes


@pytest.mark.parametrize(
    ("online", "gpu_node", "asked", "node"),
    [("0-1", 1, "local", 1), ("0-1", 1, "0", 0), ("0", -1, "local", 0), ("0", None, "local", 0)],
)
def test_the_wanted_node(monkeypatch, tmp_path, online, gpu_node, asked, node) -> None:
    monkeypatch.setattr(numa, "SYSFS", machine(tmp_path, online, gpu_node))
    assert numa.wanted_node(asked, GPU) == node


def test_a_node_that_is_not_there_is_unavailable_not_faked(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(numa, "SYSFS", machine(tmp_path, "0", -1))
    with pytest.raises(InstrumentError, match=r"no NUMA node 1 here \(there is 0\), so this placement is unavailable"):
        numa.wanted_node("1", GPU)


def test_local_needs_a_machine_that_says_where_the_gpu_is(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(numa, "SYSFS", machine(tmp_path, "0-1", -1))
    with pytest.raises(InstrumentError, match="--numa NODE"):
        numa.wanted_node("local", GPU)


def test_a_refused_binding_is_an_error(monkeypatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(numa, "_system_call", refuse)
    with (
        pytest.raises(InstrumentError, match="cannot be bound to NUMA node 0: Operation not permitted"),
        numa.bound_to(0),
    ):
        pass


def test_binding_is_undone_also_after_an_error(monkeypatch) -> None:
    policies = []
    monkeypatch.setattr(numa, "_system_call", lambda _number, policy, *_rest: policies.append(policy))
    with pytest.raises(KeyError), numa.bound_to(1):
        raise KeyError
    assert policies == [2, 0]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_pages_are_counted_by_node(monkeypatch, at_once) -> None:
    """However many pages the kernel is asked about at once."""
    asked: list[int] = []

    def kernel(_number: int, _process: int, count, pages, _nodes, status, _flags) -> None:
        import ctypes

        begin = ctypes.c_uint64.from_address(pages.value).value // mmap.PAGESIZE
        answers = (ctypes.c_int * count.value).from_address(status.value)
        answers[:] = [0, 1, 1][begin - 4 :][: count.value]
        asked.append(count.value)

    monkeypatch.setattr(numa, "_PAGES_AT_ONCE", at_once)
    monkeypatch.setattr(numa, "_system_call", kernel)
    assert numa.placement(4 * mmap.PAGESIZE, 3 * mmap.PAGESIZE) == numa.Placement({0: 1, 1: 2})
    assert (sum(asked), max(asked)) == (3, min(at_once, 3))


def test_pages_that_the_kernel_does_not_know_make_no_placement(monkeypatch) -> None:
    monkeypatch.setattr(numa, "_system_call", lambda *_arguments: None)
    found = numa.placement(0, mmap.PAGESIZE)
    assert found.nodes is None
    assert "1 of 1 pages" in str(found.reason)


def test_a_real_buffer_has_a_placement_or_a_reason() -> None:
    buffer = np.ones(8 * mmap.PAGESIZE, dtype=np.uint8)
    found = numa.placement(buffer.ctypes.data, buffer.nbytes)
    if found.nodes is None:
        assert found.reason
    else:
        assert sum(found.nodes.values()) in (8, 9)
        assert set(found.nodes) <= set(numa.online_nodes())
