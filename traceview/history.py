"""Results of many runs in one SQLite file: a row per forward and measure, keyed by the trace's content and the commit.

::

    runs      id, trace_sha256, commit_sha, label, trace, saved_at, gpu, forwards, layers, load_bytes, ...
    measures  run → runs.id, forward, device, measure, subject, value, unit, warmup
    findings  run → runs.id, finding, severity, cost_ns, share
    kernels   run → runs.id, device, kernel, shape, total_ns, call_ns: how fast the GPU ran, see compare_clocks
    measured  view: the measures of forwards that are no warm-up, with their run's commit and label

Saving the same trace for the same commit again replaces what was there. Times are ns, rates bytes per ns.
"""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from traceview.analysis.compare_measures import MEASURES, Key, Sample, layer_subject
from traceview.analysis.compare_setting import Setting
from traceview.errors import InputError, UsageError
from traceview.history_tables import BETWEEN, COLUMNS, create_tables, finding_rows, kernel_rows, measure_rows, run_row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from traceview.analysis.compare_clocks import Paces
    from traceview.history_tables import Origin
    from traceview.report import Report

_BUSY_SECONDS = 20
_CHUNK_BYTES = 1 << 20
_HINTS = {
    "locked": "another program is using it: try again when that is done",
    "readonly": "make it and its folder writable, or name another file with --to",
    "unable to open": "may its folder be written to?",
    "no such column": "another version of traceview made it: save the traces to a new file",
    "has no column": "another version of traceview made it: save the traces to a new file",
    "full": "is the disk full?",
}
"""What to do, by a part of SQLite's message."""


@dataclass(frozen=True)
class Run:
    """One saved run with its samples of some measures, in the order in which the forwards ran."""

    id: str
    label: str
    commit: str | None
    trace: str
    saved_at: str
    setting: Setting
    samples: tuple[Sample, ...]
    paces: Paces


def content_hash(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal; raises ``InputError`` where it cannot be read."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", "check the path") from None
    return digest.hexdigest()


@contextmanager
def open_history(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a file of runs; for reading only, unless ``create`` says that it is written, and made where it is missing.

    Raises ``InputError`` for what is no SQLite file, ``UsageError`` for an SQLite file that holds something else.
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory", "name the file of runs in it")
    if not create and not path.is_file():
        raise InputError(f"{path}: no such file", f"save a run first: traceview save TRACE --to {path}")
    mode = "rwc" if create else "ro"
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_BUSY_SECONDS)
        with closing(connection):
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
            if names and not names >= {"runs", "measures"}:
                raise UsageError(f"{path} holds no runs but something else", "name another file")
            if not create and (not names or not connection.execute("SELECT 1 FROM runs").fetchone()):
                raise InputError(f"{path} holds no runs yet", f"save one: traceview save TRACE --to {path}")
            yield connection
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be used: {error}", _hint(str(error))) from None


def _hint(error: str) -> str:
    """Return what to do about an error of SQLite."""
    return next((hint for part, hint in _HINTS.items() if part in error), "is it a file that traceview save made?")


def save_report(connection: sqlite3.Connection, report: Report, origin: Origin, paces: Paces | None = None) -> bool:
    """Save a report as one run, whole or not at all; return whether it replaced the same run, which keeps its date."""
    from sqlite_utils import Database

    with _transaction(connection):
        # inside an open transaction each of its steps is a savepoint, which commits nothing
        database: Any = Database(connection, recursive_triggers=False, execute_plugins=False)
        create_tables(database)
        before = connection.execute("SELECT saved_at FROM runs WHERE id = ?", [origin.run]).fetchone()
        origin = replace(origin, saved_at=before[0]) if before else origin
        for table, column in (*((name, "run") for name in COLUMNS if name != "runs"), ("runs", "id")):
            database[table].delete_where(f"{column} = ?", [origin.run])
        database["runs"].insert(run_row(report, origin))
        database["measures"].insert_all(measure_rows(report, origin.run))
        database["kernels"].insert_all(kernel_rows(paces or {}, origin.run))
        database["findings"].insert_all(finding_rows(report, origin.run))
    return before is not None


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Make all changes at once, tables included, or none; nobody else writes meanwhile."""
    connection.isolation_level = None
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def measure_names(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the measures that any run has, in the order in which comparisons list them."""
    there = {name for (name,) in connection.execute("SELECT DISTINCT measure FROM measures")}
    return tuple(name for name in MEASURES if name in there)


def read_runs(
    connection: sqlite3.Connection, measures: Sequence[str], subject: str = "", label: str | None = None
) -> tuple[Run, ...]:
    """Return the saved runs, the oldest first, with their values of some measures; warm-up is left out."""
    found = connection.execute(
        "SELECT id, label, commit_sha, trace, saved_at, gpu, layers, load_bytes FROM runs "
        "WHERE label = ? OR ? IS NULL ORDER BY saved_at, rowid",
        [label, label],
    ).fetchall()
    return tuple(
        Run(
            id=run,
            label=_text(of),
            commit=_text(commit) or None,
            trace=_text(trace),
            saved_at=_text(saved_at),
            setting=_setting(*ran),
            samples=_samples(connection, run, measures, subject),
            paces=_paces(connection, run),
        )
        for run, of, commit, trace, saved_at, *ran in found
    )


def labels(connection: sqlite3.Connection) -> tuple[str, ...]:
    """Return the labels of all runs, the latest first."""
    found = connection.execute("SELECT label FROM runs GROUP BY label ORDER BY max(saved_at) DESC")
    return tuple(_text(label) for (label,) in found)


def layers_with(connection: sqlite3.Connection, measure: str) -> tuple[int, ...]:
    """Return the layers that any run has a measure of; none for a measure of whole forwards."""
    found = connection.execute("SELECT DISTINCT subject FROM measures WHERE measure = ? AND subject != ''", [measure])
    numbers = (_text(subject).removeprefix(layer_subject("")) for (subject,) in found)
    return tuple(sorted(int(number) for number in numbers if number.isdecimal()))


def _text(value: object) -> str:
    """Return a text; any other value, which only another program writes, as one."""
    return "" if value is None else str(value)


def _setting(gpu: object, layers: object, load_bytes: object) -> Setting:
    return Setting(
        gpus=tuple(gpu.split(BETWEEN)) if gpu and isinstance(gpu, str) else (),
        layers=frozenset({layers}) if isinstance(layers, int) else frozenset(),
        load_bytes=load_bytes if isinstance(load_bytes, int) else None,
    )


def _paces(connection: sqlite3.Connection, run: str) -> Paces:
    """Return how long a run's kernels took; nothing of runs that were saved before that was."""
    found: Paces = {}
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'kernels'").fetchone():
        return found
    query = "SELECT device, kernel, shape, total_ns, call_ns FROM kernels WHERE run = ?"
    for device, kernel, shape, total_ns, call_ns in connection.execute(query, [run]):
        times = [ns for ns in (total_ns, call_ns) if isinstance(ns, (int, float)) and isfinite(ns)]
        if len(times) == 2 and isinstance(shape, int):
            found.setdefault(device, {})[_text(kernel), shape] = times[0], times[1]
    return found


def _samples(connection: sqlite3.Connection, run: str, measures: Sequence[str], subject: str) -> tuple[Sample, ...]:
    rows = connection.execute(
        "SELECT forward, device, measure, subject, value FROM measures "
        "WHERE run = ? AND warmup = 0 AND subject IN ('', ?) ORDER BY forward, device",
        [run, subject],
    )
    values: dict[tuple[int, int], dict[Key, float]] = {}
    for forward, device, measure, about, value in rows:
        if measure not in measures or not isinstance(value, (int, float)) or not isfinite(value):
            continue
        values.setdefault((forward, device), {})[Key(measure, about)] = value
    devices = sorted({device for _, device in values})
    return tuple(Sample(keyed, 0, devices.index(device)) for (_, device), keyed in values.items())
