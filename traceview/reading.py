"""From a path to a trace: an export is read as it is, a report is exported to a temporary file first."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from traceview.nsys.database import open_database
from traceview.nsys.export import REPORT_SUFFIXES, export_report
from traceview.nsys.reader import read_database
from traceview.selection import select_device, select_process, select_window, window_bounds

if TYPE_CHECKING:
    import os

    from traceview.model import Trace


def read(
    path: str | os.PathLike[str],
    *,
    nsys: str | None = None,
    process: int | None = None,
    device: int | None = None,
    window_ms: tuple[float, float] | None = None,
    metrics: bool = False,
) -> Trace:
    """Read an Nsight Systems capture, or the selected part of one.

    ``path`` is an SQLite export, which is opened read-only and never changes, or a ``.nsys-rep`` / ``.qdrep`` report,
    which ``nsys`` (the given program, ``$NSYS``, or the first one found) exports to a temporary file.
    ``process`` keeps one process id, ``device`` one CUDA device id, ``window_ms`` what lies between two moments in ms
    from the first event; ``metrics`` adds the PCIe counters of GPU metrics, which are large. Times in the result are
    integer ns on the capture's own timeline.

    Raises ``InputError`` for what cannot be read and ``SelectionError`` where the selection matches nothing.
    """
    source = Path(path)
    # moments count from the first event of what the other options keep, so only a window alone says what to read
    alone = window_ms is not None and process is None and device is None
    wanted = _Wanted(metrics, window_ms if alone else None)
    trace = _read_report(source, nsys, wanted) if source.suffix in REPORT_SUFFIXES else _read_export(source, wanted)
    if process is not None:
        trace = select_process(trace, process)
    if device is not None:
        trace = select_device(trace, device)
    if window_ms is not None:
        trace = select_window(trace, window_ms)
    return trace


@dataclass(frozen=True)
class _Wanted:
    """What to read of a file."""

    metrics: bool
    window_ms: tuple[float, float] | None


def _read_export(path: Path, wanted: _Wanted) -> Trace:
    window = None if wanted.window_ms is None else partial(window_bounds, window_ms=wanted.window_ms)
    database = open_database(path)
    with closing(database.connection):
        return read_database(database, metrics=wanted.metrics, window=window)


def _read_report(report: Path, nsys: str | None, wanted: _Wanted) -> Trace:
    with tempfile.TemporaryDirectory(prefix="traceview-") as folder:
        output = Path(folder) / "export.sqlite"
        export_report(report, output, nsys)
        trace = _read_export(output, wanted)
    return replace(trace, capture=replace(trace.capture, path=report))
