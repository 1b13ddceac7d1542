"""Where the pages of host memory are, from recorded files of the kernel and from this machine."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from recording_domain import touched_memory

from instrument.errors import UnreadableError
from instrument.machine import host_pages, numa

__all__ = ["touched_memory"]

# from a machine with two nodes: a heap, a registered pool on node 0, one interleaved, one of 2 MiB pages
NUMA_MAPS = textwrap.dedent(
    """\
    55d0c0000000 default heap anon=20 dirty=20 N1=20 kernelpagesize_kB=4
    7f0000000000 bind:0 anon=16384 dirty=16384 N0=16384 kernelpagesize_kB=4
    7f0004000000 interleave:0-1 anon=512 dirty=512 N0=256 N1=256 kernelpagesize_kB=4
    7f0004200000 default file=/anon_hugepage\\040(deleted) huge anon=4 dirty=4 N1=4 kernelpagesize_kB=2048
    7fff00000000 default stack anon=5 dirty=5 N0=5 kernelpagesize_kB=4
    """
)

SMAPS = textwrap.dedent(
    """\
    7f0000000000-7f0004000000 rw-p 00000000 00:00 0
    Size:              65536 kB
    KernelPageSize:        4 kB
    MMUPageSize:           4 kB
    AnonHugePages:     32768 kB
    VmFlags: rd wr mr mw me ac sd
    7f0004000000-7f0004200000 rw-p 00000000 00:00 0
    Size:               2048 kB
    KernelPageSize:        4 kB
    AnonHugePages:         0 kB
    7f0004200000-7f0004a00000 rw-p 00000000 00:0f 1234  /anon_hugepage (deleted)
    Size:               8192 kB
    KernelPageSize:     2048 kB
    AnonHugePages:         0 kB
    """
)


@pytest.mark.parametrize(
    ("address", "n_bytes", "counts"),
    [
        (0x7F0000000000, 64 << 20, {0: 16384}),
        (0x7F0000001000, 4096, {0: 16384}),
        (0x7F0000000000, (64 << 20) + 1, {0: 16640, 1: 256}),
        (0x7F0004200000, 8 << 20, {1: 4}),
        (0x1000, 4096, {}),
    ],
)
def test_pages_per_node_from_recorded_numa_maps(address: int, n_bytes: int, counts: dict[int, int]) -> None:
    assert host_pages.parse_numa_maps(NUMA_MAPS, address, n_bytes) == counts


def test_page_sizes_from_recorded_smaps() -> None:
    lines = SMAPS.splitlines()
    assert host_pages.parse_smaps(lines, 0x7F0000000000, 64 << 20) == (4096, 32 << 20)
    assert host_pages.parse_smaps(lines, 0x7F0004200000, 8 << 20) == (2 << 20, 0)
    with pytest.raises(UnreadableError, match=r"several page sizes: \[4096, 2097152\] bytes"):
        host_pages.parse_smaps(lines, 0x7F0004000000, 4 << 20)
    with pytest.raises(UnreadableError, match="in no mapping"):
        host_pages.parse_smaps(lines, 0x1000, 4096)


def test_where_real_pages_are(touched_memory: tuple[int, int]) -> None:
    address, n_bytes = touched_memory
    try:
        found = host_pages.pages_by_node(address, n_bytes)
    except (UnreadableError, OSError) as error:
        pytest.skip(f"this kernel does not tell: {error}")
    assert sum(found.values()) == 64
    assert set(found) <= set(numa.online_nodes())
    assert host_pages.page_sizes(address, n_bytes)[0] == os.sysconf("SC_PAGE_SIZE")


def test_a_refused_system_call_falls_back_to_numa_maps_and_says_why_when_that_fails_too(
    monkeypatch: pytest.MonkeyPatch, touched_memory: tuple[int, int]
) -> None:
    reason = "the kernel does not tell where pages are: Operation not permitted"
    monkeypatch.setattr(numa, "placement", lambda address, n_bytes: numa.Placement(None, reason))
    monkeypatch.setattr(Path, "read_text", lambda self: NUMA_MAPS)
    assert host_pages.pages_by_node(0x7F0004000000, 4096) == {0: 256, 1: 256}
    with pytest.raises(UnreadableError, match="Operation not permitted"):
        host_pages.pages_by_node(0x1000, 4096)
