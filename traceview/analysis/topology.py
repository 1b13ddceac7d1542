"""How the GPUs and NICs of a machine are wired, read from the text that ``nvidia-smi topo -m`` prints.

::

            GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
    GPU0     X      NV18    PIX     0-47            0               N/A
    GPU1    NV18     X      SYS     48-95           1               N/A
    NIC0    PIX     SYS      X

    NIC Legend:
      NIC0: mlx5_0
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

NEARNESS = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""Relations over PCIe, the nearest first: one switch, several switches, the host bridge, one node, two sockets."""

_RELATION = re.compile(rf"X|NV\d+|{'|'.join(NEARNESS)}")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_LEGEND = re.compile(r"^\s*(NIC\d+)\s*:\s*(\S+)\s*$", re.MULTILINE)
_DEVICE = re.compile(r"GPU\d+|NIC\d+|(?:mlx|bnxt|irdma|efa|rdmap|ibp|roce)\w*")
_AFFINITIES = {"CPU Affinity": "cpus", "CPUAffinity": "cpus", "NUMA Affinity": "numa"}
_HINT = "save it with: nvidia-smi topo -m > topology.txt"


@dataclass(frozen=True)
class Topology:
    """Who is how near to whom; devices are named as in the matrix (``GPU0``, ``NIC0``)."""

    relations: Mapping[tuple[str, str], str]
    """for each ordered pair of devices ``NV18``, ``PIX``, ``PXB``, ``PHB``, ``NODE`` or ``SYS``"""
    cpus: Mapping[str, str]
    """the CPUs near a GPU, as ``0-47,96-143``"""
    numa: Mapping[str, int]
    """the NUMA node of a GPU"""
    nic_names: Mapping[str, str]
    """the name in the system (``mlx5_0``) of each NIC"""

    def between(self, a: str, b: str) -> str | None:
        """Return the relation of two devices, whichever the matrix lists first, or None where it has none."""
        return self.relations.get((a, b)) or self.relations.get((b, a))

    def nvlinks(self, a: int, b: int) -> int:
        """Return how many NVLinks join two GPUs, 0 where none does."""
        relation = self.between(f"GPU{a}", f"GPU{b}") or ""
        return int(relation[2:]) if relation.startswith("NV") else 0

    def nearest_gpus(self, nic_name: str) -> tuple[int, ...]:
        """Return the GPUs that a NIC, named as in the matrix or as in the system, is nearest to; none if unknown."""
        nic = next((label for label, name in self.nic_names.items() if name == nic_name), nic_name)
        gpus = sorted({name for pair in self.relations for name in pair if name.startswith("GPU")})
        apart = {int(gpu[3:]): self.between(gpu, nic) for gpu in gpus}
        steps = {gpu: NEARNESS.index(relation) for gpu, relation in apart.items() if relation in NEARNESS}
        return tuple(gpu for gpu, away in sorted(steps.items()) if away == min(steps.values()))


def parse_topology(text: str, origin: str = "--topology") -> Topology:
    """Return what the output of ``nvidia-smi topo -m`` says; ``origin`` is named in errors.

    Tabs or runs of spaces separate the columns; colours are ignored, and so is everything around the matrix. Raises
    ``UsageError`` where there is no matrix, or only a part of one.
    """
    lines = _ESCAPES.sub("", text).splitlines()
    start = next((number for number, line in enumerate(lines) if _is_head(_cells(line))), None)
    if start is None:
        raise UsageError(f"{origin} holds no matrix of nvidia-smi topo -m", _HINT)
    head = [cell for cell in _cells(lines[start]) if cell]
    relations: dict[tuple[str, str], str] = {}
    affinities: dict[str, dict[str, str]] = {"cpus": {}, "numa": {}}
    rows = list(_rows(lines[start + 1 :]))
    _check_whole(head, rows, origin)
    for name, values in rows:
        for column, value in zip(head, values, strict=False):
            if _RELATION.fullmatch(value) and column != name:
                relations[name, column] = value
            elif column in _AFFINITIES and value and value != "N/A":
                affinities[_AFFINITIES[column]][name] = value
    numa = {name: int(node) for name, node in affinities["numa"].items() if node.isdecimal()}
    found = [name for name in head if _DEVICE.fullmatch(name) and not name.startswith("GPU")]
    return Topology(relations, affinities["cpus"], numa, {name: name for name in found} | dict(_LEGEND.findall(text)))


def _check_whole(head: Sequence[str], rows: Sequence[tuple[str, list[str]]], origin: str) -> None:
    """Raise ``UsageError`` where a GPU of the head has no row, or a row that ends before its last relation."""
    devices = [name for name in head if _DEVICE.fullmatch(name)]
    whole = {name for name, values in rows if len(values) >= len(devices)}
    if missing := [name for name in devices if name.startswith("GPU") and name not in whole]:
        cut = f"the matrix of nvidia-smi topo -m is cut off: it has no whole row for {missing[0]}"
        raise UsageError(f"{origin}: {cut}", _HINT)


def _cells(line: str) -> list[str]:
    """Return a line's cells without blanks around them; the empty first one of the head stays."""
    separator = r"\t" if "\t" in line else r"\s{2,}"
    cells = [cell.strip() for cell in re.split(separator, line.rstrip())]
    # indented output: what stands before the first name is no cell
    while len(cells) > 1 and not cells[0] and not cells[1]:
        cells = cells[1:]
    return cells


def _is_head(cells: Sequence[str]) -> bool:
    names = [cell for cell in cells if cell]
    return bool(names) and names[0] == "GPU0" and not any(_RELATION.fullmatch(name) for name in names)


def _rows(lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield each row's device and cells, up to the first line that is none."""
    for line in lines:
        cells = _cells(line)
        if cells and not cells[0]:
            cells = cells[1:]
        if not cells or not _DEVICE.fullmatch(cells[0]):
            return
        yield cells[0], cells[1:]
