"""Totals of a capture as ``nsys stats`` gives them, and what it must be helped with before they can be compared.

The program is the one that ``TRACEVIEW_NSYS`` names. It works on a copy, since it may write into what it reads.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    Totals = dict[str, tuple[int, ...]]

NSYS = os.environ.get("TRACEVIEW_NSYS")

KERNELS, TIMES, SIZES, CALLS, RANGES = REPORTS = (
    "cuda_gpu_kern_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_api_sum",
    "nvtx_gpu_proj_sum",
)
"""The reports that are asked for."""

_COLUMNS = {
    KERNELS: ("Name", "Total Time (ns)", "Instances"),
    TIMES: ("Operation", "Total Time (ns)", "Count"),
    SIZES: ("Operation", "Total (B)", "Count"),
    CALLS: ("Name", "Total Time (ns)", "Num Calls"),
    RANGES: ("Range", "Total Proj Time (ns)", "Total Range Time (ns)", "Range Instances", "Total GPU Ops"),
}
"""Of each report, the column that names a line and those that are added up."""

_DIRECTIONS = {
    "Host-to-Device": "h2d",
    "Host-to-Array": "h2d",
    "Device-to-Host": "d2h",
    "Array-to-Host": "d2h",
    "Array-to-Array": "d2d",
    "Array-to-Device": "d2d",
    "Device-to-Array": "d2d",
    "Device-to-Device": "d2d",
    "Host-to-Host": "h2h",
    "Peer-to-Peer": "p2p",
}
"""What nsys calls a kind of copy, and traceview's direction of it: an array is memory of the device."""

_OPERATION = re.compile(r"\[CUDA (?:memcpy (?P<unified>Unified )?(?P<way>[\w-]+)|memset)\]")
_SUFFIX = re.compile(r"(?:_v\d+|_ptsz|_ptds)*$")


@dataclass(frozen=True)
class Correction:
    """What is done to the copy of a capture that ``nsys stats`` reads in another way or refuses."""

    reason: str
    applies: str
    """query that gives a row where a capture needs it"""
    statements: tuple[str, ...]
    reports: tuple[str, ...]
    """which of the reports disagree without it"""


_TWINS = """
    FROM CUPTI_ACTIVITY_KIND_RUNTIME AS twin WHERE eventClass = 67 AND EXISTS (
        SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME AS plain WHERE plain.eventClass != 67
        AND plain.globalTid = twin.globalTid AND plain.correlationId = twin.correlationId)"""

CORRECTIONS = (
    Correction(
        reason="With call stacks a capture holds each traced call twice, and nsys adds up both rows. Here they are one"
        " call, which has the times of the plain row.",
        applies=f"SELECT 1 {_TWINS}",
        statements=(f"DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE rowid IN (SELECT rowid {_TWINS})",),
        reports=(CALLS,),
    ),
    Correction(
        reason="Exports from before 2022.4 have no table of copy kinds, and nsys 2023.4 refuses to sum their copies."
        " The numbers are those that later exports list.",
        applies="SELECT 1 WHERE EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_MEMCPY')"
        " AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'ENUM_CUDA_MEMCPY_OPER')",
        statements=(
            "CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER PRIMARY KEY, label TEXT)",
            "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (1, 'Host-to-Device'), (2, 'Device-to-Host'),"
            " (8, 'Device-to-Device'), (9, 'Host-to-Host'), (10, 'Peer-to-Peer'),"
            " (11, 'Unified Host-to-Device'), (12, 'Unified Device-to-Host'), (13, 'Unified Device-to-Device')",
        ),
        reports=(TIMES, SIZES),
    ),
)


def needed(path: Path) -> list[Correction]:
    """Return the corrections that a capture needs."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        return [
            one
            for one in CORRECTIONS
            if set(re.findall(r"FROM (CUPTI_\w+)", one.applies)) <= tables
            and connection.execute(one.applies).fetchone()
        ]


@cache
def stats(path: Path, *, corrected: bool = True) -> dict[str, Totals]:
    """Return the totals of every report by name; a report that nsys leaves out, since it lacks a table, is empty."""
    assert NSYS
    with tempfile.TemporaryDirectory() as folder:
        copy, output = Path(folder) / "copy.sqlite", Path(folder) / "stats"
        shutil.copyfile(path, copy)
        if corrected:
            with closing(sqlite3.connect(copy)) as connection, connection:
                for statement in (one for correction in needed(path) for one in correction.statements):
                    connection.execute(statement)
        command = [NSYS, "stats", "--report", ",".join(REPORTS), "--format", "csv:mem=B", "--output", output, copy]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count("PROCESSED") + done.stdout.count("SKIPPED: ") == len(REPORTS), done.stdout
        return {report: _totals(report, Path(f"{output}_{report}.csv")) for report in REPORTS}


def _totals(report: str, path: Path) -> Totals:
    name, *columns = _COLUMNS[report]
    with path.open(newline="") as file:
        lines = list(csv.DictReader(file))
    clean = {TIMES: _operation, SIZES: _operation, CALLS: lambda text: _SUFFIX.sub("", text)}.get(report, str)
    return add_up((clean(line[name]), *(int(line[column]) for column in columns)) for line in lines)


def add_up(rows: Iterable[tuple[str, ...]]) -> Totals:
    """Return, for each name that rows begin with, the sums of the numbers that follow it."""
    sums: dict[str, list[int]] = {}
    for name, *numbers in rows:
        known = sums.setdefault(name, [0] * len(numbers))
        sums[name] = [total + int(number) for total, number in zip(known, numbers, strict=True)]
    return {name: tuple(numbers) for name, numbers in sums.items()}


def _operation(text: str) -> str:
    """Return ``memset``, or the direction of a copy; before that of unified memory stands ``unified``."""
    found = _OPERATION.fullmatch(text)
    assert found, text
    return "memset" if not found["way"] else f"{'unified ' if found['unified'] else ''}{_DIRECTIONS[found['way']]}"
