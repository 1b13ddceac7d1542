"""Says on which NUMA nodes the pages of host memory really are, and how large these pages are.

Sources: the system call ``move_pages(2)``, which tells without moving; ``/proc/self/numa_maps`` where a container
forbids it or pages are missing; ``/proc/self/smaps`` for page sizes.
"""

from __future__ import annotations

import collections
import re
from pathlib import Path
from typing import TYPE_CHECKING

from instrument.errors import UnreadableError
from instrument.machine import numa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def pages_by_node(address: int, n_bytes: int) -> dict[int, int]:
    """Return how many pages of ``[address, address + n_bytes)`` lie on each NUMA node: {node: pages}, nodes ascending.

    Pages count in the system's base page size. Raises UnreadableError with the reason when the kernel does not tell.
    """
    found = numa.placement(address, n_bytes)
    if found.nodes is not None:
        return found.nodes
    counts = parse_numa_maps(Path("/proc/self/numa_maps").read_text(), address, n_bytes)
    if not counts:
        raise UnreadableError(found.reason)
    return dict(sorted(counts.items()))


def parse_numa_maps(text: str, address: int, n_bytes: int) -> dict[int, int]:
    """Return {node: pages} of the mappings that hold the buffer, from the text of ``/proc/PID/numa_maps``.

    The file counts whole mappings, so memory that shares a mapping with the buffer is counted too.
    """
    lines = text.splitlines()
    starts = [int(line.split(maxsplit=1)[0], 16) for line in lines]
    counts: collections.Counter[int] = collections.Counter()
    for index, (start, line) in enumerate(zip(starts, lines, strict=True)):
        next_start = starts[index + 1] if index + 1 < len(starts) else 1 << 64
        if start < address + n_bytes and next_start > address:
            for node, pages in re.findall(r"\bN(\d+)=(\d+)", line):
                counts[int(node)] += int(pages)
    return dict(counts)


def page_sizes(address: int, n_bytes: int) -> tuple[int, int]:
    """Return (bytes of a page of the buffer, bytes of its mappings that transparent huge pages hold).

    Raises UnreadableError when the buffer is in no mapping, or in mappings of several page sizes.
    """
    with Path("/proc/self/smaps").open() as lines:
        return parse_smaps(lines, address, n_bytes)


def parse_smaps(lines: Iterable[str], address: int, n_bytes: int) -> tuple[int, int]:
    """Return what ``page_sizes`` returns, from the lines of ``/proc/PID/smaps``; raises UnreadableError likewise."""
    sizes, huge_bytes = set(), 0
    for start, end, field, value_bytes in _smaps_fields(lines):
        if start >= address + n_bytes:
            break
        if end <= address:
            continue
        if field == "KernelPageSize":
            sizes.add(value_bytes)
        elif field in ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped"):
            huge_bytes += value_bytes
    if not sizes:
        raise UnreadableError("the buffer is in no mapping of this process")
    if len(sizes) > 1:
        raise UnreadableError(f"the buffer's mappings have several page sizes: {sorted(sizes)} bytes")
    return sizes.pop(), huge_bytes


def _smaps_fields(lines: Iterable[str]) -> Iterator[tuple[int, int, str, int]]:
    start = end = 0
    for line in lines:
        header = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if header:
            start, end = int(header[1], 16), int(header[2], 16)
            continue
        field = re.match(r"(\w+):\s+(\d+) kB", line)
        if field:
            yield start, end, field[1], int(field[2]) * 1024
