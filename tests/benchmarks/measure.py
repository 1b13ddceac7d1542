"""Measures ``traceview report`` against the floor and, where there is one, against ``nsys``.

For each size a capture is multiplied to it; then the report, the floor and the six reports of nsys are run in turn,
each in a process of its own, and the least of some rounds is kept: other work on the machine only ever adds. Usage::

    python tests/benchmarks/measure.py CAPTURE.sqlite --scratch /tmp/bench --rows 100000 1000000 7500000
    python tests/benchmarks/measure.py CAPTURE.sqlite --scratch /tmp/bench --rows 7500000 --nsys /opt/.../nsys

``pyperf`` is not used: it repeats to find noise in what takes microseconds, and does not tell the CPU time and peak
memory of a child that takes seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from multiply import count_rows, multiply

HERE = Path(__file__).parent
NSYS_STATS = ("cuda_api_sum", "cuda_gpu_mem_time_sum", "nvtx_gpu_proj_sum", "cuda_gpu_trace")
NSYS_ANALYZE = ("gpu_gaps", "gpu_time_util")


@dataclass(frozen=True)
class Cost:
    """What one run of a program takes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int


def run(*command: str) -> Cost:
    """Run a program and return what it took; what it writes goes to a file, as where somebody uses it."""
    with tempfile.TemporaryFile() as output:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        # nsys exits with 0 whatever became of a report
        failed = next((line for line in output if line.startswith(b"ERROR")), None)
    if process.returncode or failed:
        raise SystemExit(f"{' '.join(command)} failed: {failed or process.returncode!r}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def least(costs: list[Cost]) -> Cost:
    """Return the least of each number."""
    return Cost(*(min(getattr(cost, name) for cost in costs) for name in ("wall_s", "cpu_s", "peak_bytes")))


def floor_of(path: Path) -> Cost:
    """Return what SQLite alone takes to step over the columns, without the start of the process."""
    done = subprocess.run([sys.executable, str(HERE / "floor.py"), str(path)], capture_output=True, check=True)
    wall, cpu = json.loads(done.stdout)
    return Cost(wall, cpu, 0)


def report_of(path: Path) -> Cost:
    """Return what the whole report takes, from the start of Python to the last byte of JSON."""
    return run(sys.executable, "-m", "traceview", "report", str(path), "--format", "json")


def nsys_of(nsys: str, path: Path) -> dict[str, Cost]:
    """Return what each of the reports of nsys takes; ``nsysstats`` of its installation has to be on PYTHONPATH."""
    commands = {name: (nsys, "stats", "--report", name, "--format", "csv", str(path)) for name in NSYS_STATS}
    commands |= {name: (nsys, "analyze", "--rule", name, "--format", "csv", str(path)) for name in NSYS_ANALYZE}
    return {name: run(*command) for name, command in commands.items()}


def measure(source: Path, scratch: Path, rows: int, rounds: int, nsys: str | None) -> dict[str, object]:
    """Return all numbers of one size."""
    path = scratch / f"{source.stem}-{rows}.sqlite"
    if not path.exists():
        multiply(source, path, max(round(rows / count_rows(source)), 1))
    pairs = [(report_of(path), floor_of(path)) for _ in range(rounds)]
    report, floor = (least([pair[side] for pair in pairs]) for side in (0, 1))
    found: dict[str, object] = {
        "rows": count_rows(path),
        "file_bytes": path.stat().st_size,
        "report": vars(report),
        "floor": vars(floor),
        "wall_over_floor": min(one.wall_s / other.wall_s for one, other in pairs),
        "cpu_over_floor": report.cpu_s / floor.cpu_s,
        "us_per_row": report.cpu_s / count_rows(path) * 1e6,
        "peak_bytes_per_row": report.peak_bytes / count_rows(path),
    }
    if nsys:
        reference = nsys_of(nsys, path)
        found["nsys"] = {name: vars(cost) for name, cost in reference.items()}
        found["wall_over_nsys"] = report.wall_s / sum(cost.wall_s for cost in reference.values())
        found["cpu_over_nsys"] = report.cpu_s / sum(cost.cpu_s for cost in reference.values())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("--scratch", type=Path, required=True, help="folder for the multiplied captures")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 7_500_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nsys", help="also run the reports of this nsys")
    chosen = parser.parse_args()
    if chosen.nsys and not shutil.which(chosen.nsys):
        parser.error(f"{chosen.nsys} is no program")
    chosen.scratch.mkdir(parents=True, exist_ok=True)
    for rows in chosen.rows:
        found = measure(chosen.source, chosen.scratch, rows, chosen.rounds, chosen.nsys)
        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
