"""Turns a report (``.nsys-rep``, ``.qdrep``) into SQLite with the user's own ``nsys``."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from traceview.errors import InputError, NsysError

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT_SUFFIXES = (".nsys-rep", ".qdrep")
_INSTALL_GLOBS = (
    "nvidia/nsight-systems/*/bin/nsys",
    "nvidia/nsight-systems/*/target-linux-x64/nsys",
    "nvidia/nsight-compute/*/host/target-linux-x64/nsys",
)
"""From the first choice to the last: Nsight Compute ships an older nsys."""


def find_nsys(given: str | None = None, root: Path = Path("/opt")) -> Path:
    """Return the ``nsys`` to use: the given one, ``$NSYS``, the one on PATH, else the newest under ``/opt/nvidia``.

    Raises ``NsysError`` where there is none, or where the one that was named does not exist.
    """
    for origin, named in (("--nsys", given), ("$NSYS", os.environ.get("NSYS"))):
        if named:
            found = shutil.which(named)
            if found is None:
                raise NsysError(f"{origin} names {named}, which is no program", "give the path of the nsys program")
            return Path(found)
    on_path = shutil.which("nsys")
    if on_path:
        return Path(on_path)
    for pattern in _INSTALL_GLOBS:
        installed = [path for path in root.glob(pattern) if os.access(path, os.X_OK)]
        if installed:
            return max(installed, key=_version)
    raise NsysError("nsys was not found", "install Nsight Systems, or name it with --nsys PATH or $NSYS")


def _version(path: Path) -> list[int]:
    """Return the numbers in a path: those of the installation's version, for all places of one pattern."""
    return [int(number) for number in re.findall(r"\d+", str(path))]


@contextmanager
def exported(report: Path, nsys: str | None = None) -> Iterator[Path]:
    """Give a temporary SQLite export of a report; errors in what is read of it name the report.

    Raises like :func:`export_report`.
    """
    with tempfile.TemporaryDirectory(prefix="traceview-") as folder:
        output = Path(folder) / "export.sqlite"
        export_report(report, output, nsys)
        try:
            yield output
        except InputError as error:
            raise type(error)(error.message.replace(str(output), f"the export of {report}"), error.hint) from None


def export_report(report: Path, output: Path, nsys: str | None = None) -> None:
    """Export a report to a new SQLite file; nsys shows its progress when standard error is a terminal.

    Raises ``InputError`` for a missing report and ``NsysError`` where nsys is missing or fails.
    """
    if report.is_dir():
        raise InputError(f"{report} is a directory", "name one report")
    if not report.is_file():
        raise InputError(f"{report}: no such file", "check the path")
    try:
        program = find_nsys(nsys)
    except NsysError as error:
        hint = f"{error.hint}; or export where nsys is: nsys export --type sqlite -o trace.sqlite {report}"
        raise NsysError(f"{report} is a report, and {error.message}", hint) from None
    shown = sys.stderr.isatty()
    command = [
        str(program), "export", "--type", "sqlite", "--output", str(output), "--quiet", "false" if shown else "true",
        str(report.resolve()),
    ]  # fmt: skip
    output_to = sys.stderr if shown else subprocess.PIPE
    try:
        done = subprocess.run(command, stdout=output_to, stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        raise NsysError(f"{program} could not be run: {error.strerror}", "name another nsys with --nsys PATH") from None
    if done.returncode or not output.is_file():
        words = (done.stdout or b"").decode("utf-8", "replace").strip().splitlines()
        reason = words[-1] if words else f"exit code {done.returncode}"
        raise NsysError(
            f"{program} could not export {report}: {reason}", "is this nsys at least as new as the capture?"
        )
