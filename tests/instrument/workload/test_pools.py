"""Host memory as it is asked for, where it is asked for."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from instrument.errors import InstrumentError, UnreadableError  # noqa: E402
from instrument.workload import pools  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("huge_pages", ["none", "transparent"])
def test_mapped_memory_is_there_and_writable(huge_pages) -> None:
    n_bytes = 3 * mmap.PAGESIZE + 16
    memory = np.frombuffer(pools._map(n_bytes, huge_pages), dtype=np.uint8, count=n_bytes)
    assert not memory.any()
    memory[:] = 7
    assert int(memory.sum()) == 7 * n_bytes


def test_huge_pages_that_are_not_reserved_are_said_with_what_to_do(monkeypatch) -> None:
    def none_left(*_arguments: object, **_options: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(pools, "_huge_page_bytes", lambda: 2 << 20)
    monkeypatch.setattr(mmap, "mmap", none_left)
    with pytest.raises(
        InstrumentError, match=r"no 3 reserved huge pages .*nr_hugepages, or use --huge-pages transparent"
    ):
        pools._map(5 << 20, "reserved")


def test_a_registered_pool_is_unregistered_also_after_an_error(monkeypatch) -> None:
    calls = []
    monkeypatch.setattr(pools.cudart, "register", lambda address, n_bytes: calls.append((address, n_bytes)))
    monkeypatch.setattr(pools.cudart, "unregister", lambda address: calls.append(address))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: calls.append("synchronised"))
    with pytest.raises(KeyError), pools._registered(8192, "none") as tensor:
        raise KeyError
    assert calls == [(tensor.data_ptr(), 8192), "synchronised", tensor.data_ptr()]


@pytest.mark.parametrize(("found", "fails"), [({1: 4}, False), ({0: 1, 1: 3}, True), ({0: 4}, True)])
def test_pages_on_another_node_than_asked_fail_the_run(monkeypatch, found, fails) -> None:
    monkeypatch.setattr(pools, "pages_by_node", lambda _address, _n_bytes: found)
    if not fails:
        pools.require_on(1, np.zeros(4, dtype=np.uint8))
        return
    with pytest.raises(InstrumentError, match="bound to NUMA node 1, but its pages by node are"):
        pools.require_on(1, np.zeros(4, dtype=np.uint8))


def test_pages_that_nobody_can_place_do_not_fail_the_run(monkeypatch) -> None:
    def unknown(_address: int, _n_bytes: int) -> None:
        raise UnreadableError("no answer")

    monkeypatch.setattr(pools, "pages_by_node", unknown)
    pools.require_on(1, np.zeros(4, dtype=np.uint8))
