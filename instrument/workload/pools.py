"""The host memory that loads come from: pinned by CUDA, mapped and registered, or plain pageable memory."""

from __future__ import annotations

import mmap
import re
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from instrument.cuda import cudart
from instrument.errors import InstrumentError, UnreadableError
from instrument.machine import numa
from instrument.machine.host_pages import pages_by_node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from instrument.workload.options import Options

_MAP_HUGETLB = 0x40000
"""From ``mman.h``; Python's mmap module does not name it."""

FINITE_BF16_MASK = -0x4000_4000_4000_4001
"""Clears the top exponent bit of each 16-bit word of an int64: every bfloat16 is below 2, never infinite or NaN."""


@dataclass(frozen=True)
class HostPool:
    """Host memory as bytes: the same memory as an array and as a CPU tensor.

    ``node`` is the NUMA node that it is bound to, None when it is bound to none.
    """

    kind: str
    array: NDArray[np.uint8]
    tensor: torch.Tensor
    node: int | None

    @property
    def address(self) -> int:
        """Address of the first byte."""
        return int(self.array.ctypes.data)


@contextmanager
def host_pool(options: Options, device: int) -> Iterator[HostPool]:
    """Allocate the pool that the options ask for, on the node that they ask for, filled; release it at the end."""
    node = None if options.numa is None else numa.wanted_node(options.numa, cudart.pci_address(device))
    n_bytes = options.shape.pool_bytes
    with ExitStack() as stack:
        with numa.bound_to(node):
            tensor = stack.enter_context(_KINDS[options.pool](n_bytes, options.huge_pages))
            array = tensor.numpy()
            fill(array, options.shape.seed)
        if node is not None:
            require_on(node, array)
        yield HostPool(options.pool, array, tensor, node)


def require_on(node: int, array: NDArray[np.uint8]) -> None:
    """Raise `InstrumentError` when pages of ``array`` are known to be elsewhere than on ``node``.

    Where nobody can tell, the facts of the run say so; that is no reason to fail.
    """
    try:
        found = pages_by_node(array.ctypes.data, len(array))
    except UnreadableError:
        return
    if set(found) != {node}:
        raise InstrumentError(f"the pool was bound to NUMA node {node}, but its pages by node are {found}")


def fill(array: NDArray[np.uint8], seed: int) -> None:
    """Fill with reproducible random bytes that are finite numbers when read as bfloat16."""
    generator = np.random.default_rng(seed)
    words = array.view(np.int64)
    step = 1 << 21
    for first in range(0, len(words), step):
        part = words[first : first + step]
        part[:] = generator.integers(-(2**63), 2**63, len(part)) & FINITE_BF16_MASK


@contextmanager
def _pinned(n_bytes: int, _huge_pages: str) -> Iterator[torch.Tensor]:
    yield torch.empty(n_bytes, dtype=torch.uint8, pin_memory=True)


@contextmanager
def _pageable(n_bytes: int, _huge_pages: str) -> Iterator[torch.Tensor]:
    yield torch.empty(n_bytes, dtype=torch.uint8)


@contextmanager
def _registered(n_bytes: int, huge_pages: str) -> Iterator[torch.Tensor]:
    tensor = torch.frombuffer(_map(n_bytes, huge_pages), dtype=torch.uint8, count=n_bytes)
    cudart.register(tensor.data_ptr(), tensor.numel())
    try:
        yield tensor
    finally:
        torch.cuda.synchronize()
        cudart.unregister(tensor.data_ptr())


def _map(n_bytes: int, huge_pages: str) -> mmap.mmap:
    """Map anonymous memory that is there at once, in pages of the wanted kind."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if huge_pages == "transparent":
        # pages must be asked to be huge before they are touched, so MAP_POPULATE comes too early: `fill` touches them
        memory = mmap.mmap(-1, n_bytes, flags=flags)
        memory.madvise(mmap.MADV_HUGEPAGE)
        memory[:: mmap.PAGESIZE] = bytes(-(-n_bytes // mmap.PAGESIZE))
        return memory
    if huge_pages == "none":
        return mmap.mmap(-1, n_bytes, flags=flags | mmap.MAP_POPULATE)
    huge = _huge_page_bytes()
    rounded = -(-n_bytes // huge) * huge
    try:
        return mmap.mmap(-1, rounded, flags=flags | mmap.MAP_POPULATE | _MAP_HUGETLB)
    except OSError as error:
        raise InstrumentError(
            f"no {rounded // huge} reserved huge pages ({error.strerror}): write that number to "
            "/proc/sys/vm/nr_hugepages, or use --huge-pages transparent"
        ) from None


def _huge_page_bytes() -> int:
    found = re.search(r"Hugepagesize:\s+(\d+) kB", Path("/proc/meminfo").read_text())
    if found is None:
        raise InstrumentError("this kernel has no huge pages: leave out --huge-pages")
    return int(found[1]) * 1024


_KINDS: dict[str, Callable[[int, str], Any]] = {"pinned": _pinned, "registered": _registered, "pageable": _pageable}
