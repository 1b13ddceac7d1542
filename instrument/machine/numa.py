"""Where host memory is: binding allocations to a NUMA node, and asking the kernel which node holds each page.

System calls are made directly (``set_mempolicy(2)``, ``move_pages(2)``), so no library for NUMA is needed.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import re
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instrument.errors import InstrumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

SYSFS = Path("/sys")

_SYSTEM_CALLS = {"x86_64": (238, 279), "aarch64": (237, 239)}
"""Numbers of set_mempolicy and move_pages by machine, from the kernel's ``unistd.h``."""

_DEFAULT_POLICY, _BIND_POLICY = 0, 2
_MAX_NODES = 1024
_PAGES_AT_ONCE = 1 << 18
"""A pool of 512 GiB has 2^27 pages; asked for at once, their addresses and answers alone would take 1.5 GiB."""


@dataclass(frozen=True)
class Placement:
    """Pages per NUMA node, or None with the reason why nobody can tell."""

    nodes: dict[int, int] | None
    reason: str | None = None


def online_nodes() -> tuple[int, ...]:
    """Return the numbers of this machine's NUMA nodes; a kernel without NUMA has node 0 alone."""
    try:
        text = (SYSFS / "devices/system/node/online").read_text()
    except OSError:
        return (0,)
    nodes: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        nodes.extend(range(int(first), int(last or first) + 1))
    return tuple(nodes) or (0,)


def device_node(pci_address: str) -> int | None:
    """Return the NUMA node that the PCI device is attached to, None where the machine does not say."""
    try:
        node = int((SYSFS / "bus/pci/devices" / pci_address / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return node if node >= 0 else None


def wanted_node(asked: str, pci_address: str) -> int:
    """Turn ``local`` or a number into a node of this machine; raise `InstrumentError` when there is no such node."""
    nodes = online_nodes()
    if asked == "local":
        node = device_node(pci_address)
        if node is None and len(nodes) > 1:
            raise InstrumentError(
                f"the machine does not say which node GPU {pci_address} is attached to: use --numa NODE"
            )
        return nodes[0] if node is None else node
    if int(asked) not in nodes:
        listed = ", ".join(map(str, nodes))
        raise InstrumentError(f"no NUMA node {asked} here (there is {listed}), so this placement is unavailable")
    return int(asked)


@contextmanager
def bound_to(node: int | None) -> Iterator[None]:
    """Let this thread allocate memory on ``node`` alone while the block runs; None changes nothing."""
    if node is None:
        yield
        return
    mask = (ctypes.c_ulong * (_MAX_NODES // 64))()
    mask[node // 64] = 1 << (node % 64)
    _set_policy(_BIND_POLICY, mask, f"memory cannot be bound to NUMA node {node}")
    try:
        yield
    finally:
        _set_policy(_DEFAULT_POLICY, None, "the memory policy cannot be reset")


def placement(address: int, n_bytes: int) -> Placement:
    """Ask the kernel on which node every page of ``[address, address + n_bytes)`` is."""
    step = mmap.PAGESIZE * _PAGES_AT_ONCE
    found: Counter[int] = Counter()
    try:
        for begin in range(address // mmap.PAGESIZE * mmap.PAGESIZE, address + n_bytes, step):
            found.update(_statuses(begin, min(begin + step, address + n_bytes)))
    except (OSError, InstrumentError) as error:
        return Placement(None, f"the kernel does not tell where pages are: {_words(error)}")
    missing = {code: pages for code, pages in found.items() if code < 0}
    if missing:
        reasons = ", ".join(sorted(os.strerror(-code) for code in missing))
        pages = f"{sum(missing.values())} of {found.total()}"
        return Placement(None, f"the kernel does not tell where {pages} pages are: {reasons}")
    return Placement(dict(sorted(found.items())))


def _statuses(begin: int, end: int) -> dict[int, int]:
    """Return {node, or error number below 0: pages} of the pages from ``begin``, the start of one, to ``end``."""
    pages = np.arange(begin, end, mmap.PAGESIZE, dtype=np.uint64)
    status = np.full(len(pages), -errno.ENODATA, dtype=np.int32)
    _system_call(_system_calls()[1], 0, ctypes.c_ulong(len(pages)), _at(pages), None, _at(status), 0)
    codes, counts = np.unique(status, return_counts=True)
    return dict(zip(codes.tolist(), counts.tolist(), strict=True))


def _set_policy(policy: int, mask: ctypes.Array[ctypes.c_ulong] | None, what: str) -> None:
    try:
        bits = ctypes.c_ulong(0 if mask is None else _MAX_NODES)
        _system_call(_system_calls()[0], policy, mask, bits)
    except OSError as error:
        raise InstrumentError(f"{what}: {_words(error)}; leave out --numa") from None


def _system_calls() -> tuple[int, int]:
    try:
        return _SYSTEM_CALLS[platform.machine()]
    except KeyError:
        raise InstrumentError(f"no NUMA calls known for {platform.machine()}: leave out --numa") from None


def _system_call(number: int, *arguments: object) -> None:
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    if call(ctypes.c_long(number), *arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _at(array: np.ndarray[tuple[int], np.dtype[np.generic]]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _words(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
