"""Captures a run of the workload with Nsight Systems: finds ``nsys``, runs it, exports SQLite, keeps the run's JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from instrument.errors import InstrumentError
from instrument.workload.outcome import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USUAL_PLACES = (
    "opt/nvidia/nsight-systems/*/bin/nsys",
    "opt/nvidia/nsight-systems/*/target-linux-x64/nsys",
    "opt/nvidia/nsight-compute/*/host/target-linux-x64/nsys",
)
"""Where installers put nsys, from the root of the file system; Nsight Compute brings one along."""

SUFFIXES = (".nsys-rep", ".sqlite", ".json")
"""What a capture consists of: the report, its export, and the run's JSON line."""


@dataclass(frozen=True)
class Request:
    """What to capture: the arguments of ``python -m instrument run``, where to put the files, and what else to record.

    ``metrics`` names the GPUs whose hardware counters to sample (``all``, ``0``), None for none.
    """

    out: Path
    name: str
    run: Sequence[str]
    graph_nodes: bool = False
    metrics: str | None = None
    metrics_hz: int | None = None
    cuda_stacks: bool = False
    python_stacks: bool = False
    force: bool = False
    python: str = field(default=sys.executable)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that the capture will write."""
        return tuple(self.out / f"{self.name}{suffix}" for suffix in SUFFIXES)


def find_nsys(given: str | None, environment: Mapping[str, str], root: Path = Path("/")) -> str:
    """Return the path of nsys: the one given, else ``$NSYS``, else on PATH, else the newest in the usual places.

    Raises `InstrumentError` where there is none.
    """
    for source, path in (("--nsys", given), ("$NSYS", environment.get("NSYS"))):
        if path:
            if shutil.which(path) is None:
                raise InstrumentError(f"{source} names {path}, which cannot be run: give the path of nsys")
            return path
    on_path = shutil.which("nsys", path=environment.get("PATH"))
    if on_path:
        return on_path
    installed = [path for place in USUAL_PLACES for path in root.glob(place) if os.access(path, os.X_OK)]
    if not installed:
        raise InstrumentError("no nsys on PATH or under /opt/nvidia: install Nsight Systems, or use --nsys PATH")
    return str(max(installed, key=_version_in))


def _version_in(path: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", path.parents[1].name + path.parents[2].name))


def profile_command(request: Request, nsys: str, report: Path) -> list[str]:
    """Return the command that profiles the run; ``report`` is the file that nsys will write."""
    stacks = request.cuda_stacks or request.python_stacks
    command = [nsys, "profile", *trace_flags(request)]
    if not stacks:
        # stacks of CUDA calls are taken by the sampler, which must then be left on
        command += ["--sample=none", "--cpuctxsw=none"]
    command += ["--force-overwrite=true", f"--output={report}"]
    return [*command, request.python, "-m", "instrument", "run", *request.run]


def trace_flags(request: Request) -> list[str]:
    """Return the flags that decide what the capture holds."""
    flags = ["--trace=cuda,nvtx"]
    if request.graph_nodes:
        flags.append("--cuda-graph-trace=node")
    if request.metrics is not None:
        flags.append(f"--gpu-metrics-devices={request.metrics}")
    if request.metrics_hz is not None:
        flags.append(f"--gpu-metrics-frequency={request.metrics_hz}")
    if request.cuda_stacks:
        flags.append("--cudabacktrace=all")
    if request.python_stacks:
        flags.append("--python-backtrace=cuda")
    return flags


def export_command(request: Request, nsys: str, report: Path, target: Path) -> list[str]:
    """Return the command that exports the report; Python frames are in the export only when asked for."""
    command = [nsys, "export", "--type=sqlite", "--force-overwrite=true", f"--output={target}"]
    if request.python_stacks:
        command += ["--include-blobs=true", "--include-json=true"]
    return [*command, str(report)]


def capture(request: Request, nsys: str) -> tuple[Path, ...]:
    """Run, export, and return the files (report, export, JSON); they appear together or not at all.

    Raises `InstrumentError` where a file is there already, or the run, nsys or its export fails.
    """
    existing = [path.name for path in request.files if path.exists()]
    if existing and not request.force:
        raise InstrumentError(f"{request.out} already has {', '.join(existing)}: use --name NAME, or --force")
    try:
        _make(request, nsys)
    except OSError as error:
        raise InstrumentError(f"{request.out} cannot be written: {error.strerror}; use --out FOLDER") from None
    return request.files


def _make(request: Request, nsys: str) -> None:
    """Make the files in a folder beside their places, then put them there."""
    request.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=request.out, prefix=".capture-") as folder:
        made = [Path(folder) / path.name for path in request.files]
        output = _call(profile_command(request, nsys, made[0]), "the run")
        line = run_line(output)
        line["capture"] = {"nsys": _version(nsys), "flags": trace_flags(request)}
        if not made[0].exists():
            raise InstrumentError(f"nsys wrote no report: {_last_words(output)}")
        _call(export_command(request, nsys, made[0], made[1]), "the export")
        made[2].write_text(json.dumps(line, separators=(",", ":")) + "\n")
        for path, place in zip(made, request.files, strict=True):
            path.replace(place)


def run_line(output: str) -> dict[str, Any]:
    """Find the run's JSON line among what the run and nsys printed; raise `InstrumentError` where there is none."""
    for text in reversed(output.splitlines()):
        if text.startswith("{"):
            try:
                line = json.loads(text)
            except json.JSONDecodeError:
                continue
            if line.get("schema") == SCHEMA:
                return dict(line)
    raise InstrumentError(f"the run printed no JSON line: {_last_words(output)}")


def _call(command: list[str], what: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise InstrumentError(f"{command[0]} cannot be run: {error.strerror}; use --nsys PATH") from None
    if done.returncode:
        raise InstrumentError(
            f"{what} ended with exit code {done.returncode}: {_last_words(done.stderr or done.stdout)}"
        )
    return done.stdout


def _last_words(output: str) -> str:
    """Return the line that explains a failure: the last that speaks of an error, else the last."""
    lines = [text.strip() for text in output.splitlines() if text.strip()]
    errors = [text for text in lines if "error" in text.lower()]
    return (errors or lines or ["it printed nothing"])[-1]


def _version(nsys: str) -> str:
    found = re.search(r"\d+(?:\.\d+)+\S*", _call([nsys, "--version"], "nsys --version"))
    return found[0] if found else "unknown"
