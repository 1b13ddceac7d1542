"""Reads only what a window of time needs, so that a small part of a large trace takes little memory.

What it keeps is more than the window: also rows by which the trace still knows its first and last moment, its streams,
devices and threads. Which of the rows belong to the window is decided by whoever selects it, as for a whole trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview.nsys import schema
from traceview.nsys.columns import read_columns
from traceview.nsys.names import combined, process_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traceview.model import Flags, Ints
    from traceview.nsys.database import Database

    Table = dict[str, Ints]

_PLACE = ("pid", "device", "context", "green", "stream", "copy_kind", "source", "target")
_KINDS = {"event_class", "copy_kind"}
_MAX_CORRELATION = 1 << 40


class Pruning:
    """Chooses rows of operations and calls that a window from ``low`` to ``high`` ns needs; operations come first."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = low, high
        self._keys: list[Ints] = []

    def operations(self, table: Table) -> Flags:
        """Return which operations to keep, and remember which calls launched those of the window."""
        inside = self._overlapping(table)
        self._keys.append(_keys(table["pid"][inside], table["correlation"][inside]))
        return inside | _examples(table, [name for name in _PLACE if name in table])

    def remember(self, tables: Iterable[Table]) -> None:
        """Keep the calls that made some event records and waits, whenever that was: they are few."""
        self._keys += [_keys(table["pid"], table["correlation"]) for table in tables]
        self._keys = [np.unique(np.concatenate(self._keys))]

    def calls(self, table: Table) -> Flags:
        """Return which calls to keep."""
        wanted = self._keys[0]
        key = _keys(table["tid"], table["correlation"])
        at = np.minimum(np.searchsorted(wanted, key), max(len(wanted) - 1, 0))
        launched = (key >= 0) & (wanted[at] == key) if len(wanted) else np.zeros(len(key), dtype=bool)
        kept: Flags = self._overlapping(table) | launched | _examples(table, ["tid"])
        return kept

    def _overlapping(self, table: Table) -> Flags:
        inside: Flags = (table["start"] < self._high) & (np.maximum(table["start"], table["end"]) > self._low)
        return inside


def plan_pruning(
    database: Database,
    sources: Sequence[schema.Source],
    migrating: Iterable[int],
    first_range: int | None,
    window: Callable[[int], tuple[int, int]],
) -> Pruning | None:
    """Return what to read of operations from some sources and of calls, or None where all has to be read.

    ``migrating`` are the copy kinds that are no operations, ``first_range`` is when the first NVTX range starts,
    ``window`` gives the window's ends by when the first event starts. All has to be read where rows have to be put
    together or told apart first: with call stacks, and with unified-memory migrations.
    """
    calls = _First()
    read_columns(database, _only(schema.CALLS, "event_class"), calls.look)
    if schema.BACKTRACE_CLASS in calls.kinds:
        return None
    operations = _First()
    for source in sources:
        read_columns(database, _only(source, "copy_kind"), operations.look)
    if operations.kinds & set(migrating):
        return None
    starts = [start for start in (calls.start, operations.start, first_range) if start is not None]
    return Pruning(*window(min(starts))) if starts else None


class _First:
    """Looks at blocks of rows without keeping any: when the first starts, and of what kinds they are."""

    def __init__(self) -> None:
        self.start: int | None = None
        self.kinds: set[int] = set()

    def look(self, table: Table) -> Flags:
        """Take a block into account and keep nothing of it."""
        if len(table["start"]):
            start = int(table["start"].min())
            self.start = start if self.start is None else min(self.start, start)
        for name in _KINDS & table.keys():
            self.kinds.update(np.unique(table[name]).tolist())
        return np.zeros(len(table["start"]), dtype=bool)


def _only(source: schema.Source, *names: str) -> schema.Source:
    fields = {name: field for name, field in source.fields.items() if name in ("start", *names)}
    return schema.Source(source.tables, fields)


def _examples(table: Table, names: Sequence[str]) -> Flags:
    """Return one row for each place that a block knows, its first to start and its last to end."""
    chosen = np.zeros(len(table["start"]), dtype=bool)
    if len(chosen):
        chosen[np.unique(combined([table[name] for name in names]), return_index=True)[1]] = True
        chosen[[int(np.argmin(table["start"])), int(np.argmax(np.maximum(table["start"], table["end"])))]] = True
    return chosen


def _keys(identity: Ints, correlation: Ints) -> Ints:
    """Return one number per (process, correlation id), -1 where there is none."""
    valid = (correlation > 0) & (correlation < _MAX_CORRELATION)
    return np.where(valid, process_of(identity) * _MAX_CORRELATION + correlation, -1)
