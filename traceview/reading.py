"""From a path to a trace: an export is read as it is, a report is exported to a temporary file first."""

from __future__ import annotations

import warnings
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceview.nsys.database import check_file, open_database
from traceview.nsys.export import REPORT_SUFFIXES, exported
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
    # moments count from the first event of what the other options keep, so only a window alone says what to read
    alone = window_ms is not None and process is None and device is None
    whole = _read_file(Path(path), nsys, _Wanted(metrics, window_ms if alone else None))
    return _select(whole, process, device, window_ms)


def read_through(cache: Path, path: Path, *, nsys: str | None = None, metrics: bool = False, **selection: Any) -> Trace:
    """Read a capture like :func:`read`, and keep it whole in the folder ``cache``, or take it from there.

    Warns (``RuntimeWarning``) where it cannot be kept. Raises ``OutputError`` where ``cache`` is no folder.
    """
    from traceview.cache import through_cache

    if path.suffix not in REPORT_SUFFIXES:
        check_file(path)
    make = partial(_read_file, path, nsys, _Wanted(metrics, None))
    whole, complaint = through_cache(cache, path, f"metrics={metrics}", make)
    if complaint is not None:
        warnings.warn(complaint, RuntimeWarning, stacklevel=2)
    return _select(whole, selection.get("process"), selection.get("device"), selection.get("window_ms"))


def _select(trace: Trace, process: int | None, device: int | None, window_ms: tuple[float, float] | None) -> Trace:
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


def _read_file(source: Path, nsys: str | None, wanted: _Wanted) -> Trace:
    if source.suffix in REPORT_SUFFIXES:
        return _read_report(source, nsys, wanted)
    return _read_export(source, wanted)


def _read_export(path: Path, wanted: _Wanted) -> Trace:
    window = None if wanted.window_ms is None else partial(window_bounds, window_ms=wanted.window_ms)
    database = open_database(path)
    with closing(database.connection):
        trace = read_database(database, metrics=wanted.metrics, window=window)
    database.check_unchanged()
    return trace


def _read_report(report: Path, nsys: str | None, wanted: _Wanted) -> Trace:
    with exported(report, nsys) as output:
        trace = _read_export(output, wanted)
    return replace(trace, capture=replace(trace.capture, path=report))
