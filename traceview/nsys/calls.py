"""Reads API rows: one row per call, and the keys by which operations find their launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.model import Calls
from traceview.nsys import schema
from traceview.nsys.names import distinct, process_of

if TYPE_CHECKING:
    from traceview.model import Ints
    from traceview.nsys.database import Database
    from traceview.nsys.names import NameTable

    Table = dict[str, Ints]

_MAX_CORRELATION = 1 << 40


@dataclass(frozen=True)
class ApiRows:
    """API rows in start order, one per call, and what finds a call by process and correlation id."""

    table: Table
    processes: Ints
    """sorted process ids that made calls"""
    keys: Ints
    """sorted (process, correlation id) keys"""
    rows: Ints
    """for each key, the row of its call"""

    def find(self, process: Ints, correlation: Ints) -> Ints:
        """Return the row of the call with each process's correlation id, or -1."""
        if not len(self.keys):
            return np.full(len(process), -1, dtype=np.int64)
        key = _keys(self.processes, process, correlation)
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where((key >= 0) & (self.keys[at] == key), self.rows[at], -1)


def read_api(database: Database) -> ApiRows:
    """Return the export's API calls in start order; a call recorded twice is one row with its stack."""
    table = _merge_backtraces(database.columns(schema.CALLS))
    start = table["start"]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        table = {name: values[order] for name, values in table.items()}
    process = process_of(table["tid"])
    processes = distinct(process)
    keys = _keys(processes, process, table["correlation"])
    rows = np.flatnonzero(keys >= 0)
    keys = keys[rows]
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
    return ApiRows(table, processes, keys, rows)


def make_calls(database: Database, api: ApiRows, thread: Ints, names: NameTable) -> Calls:
    """Return API rows as calls; ``thread`` is the dense thread index of each row."""
    table = api.table
    raw = distinct(table["name"])
    texts = {number: schema.documented_name(text) for number, text in database.strings(raw[raw >= 0]).items()}
    name = names.add_all(table["name"], texts)
    kinds = np.array([int(schema.call_kind(text)) for text in names.texts] or [0], dtype=np.int64)
    return Calls(
        start=table["start"],
        end=np.maximum(table["end"], table["start"]),
        thread=thread,
        name=name,
        kind=np.where(name >= 0, kinds[np.maximum(name, 0)], 0),
        stack=table["stack"],
    )


def _keys(processes: Ints, process: Ints, correlation: Ints) -> Ints:
    """Return one number per (process, correlation id), or -1 where there is none or the process is unknown."""
    if not len(processes):
        return np.full(len(process), -1, dtype=np.int64)
    index = np.minimum(np.searchsorted(processes, process), len(processes) - 1)
    valid = (processes[index] == process) & (correlation > 0) & (correlation < _MAX_CORRELATION)
    return np.where(valid, index * _MAX_CORRELATION + correlation, -1)


def _merge_backtraces(table: Table) -> Table:
    """Give the stack of each backtrace row to the plain row of the same call and drop the backtrace row.

    Rows of one thread and correlation id are paired in start order; a backtrace row without a plain one stays.
    """
    backtrace = table["event_class"] == schema.BACKTRACE_CLASS
    if not backtrace.any():
        return table
    thread, correlation = table["tid"], table["correlation"]
    order = np.lexsort((table["start"], backtrace, correlation, thread))
    fresh = _changes(thread[order], correlation[order], backtrace[order])
    positions = np.arange(len(order))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = positions - np.maximum.accumulate(np.where(fresh, positions, 0))
    order = np.lexsort((backtrace, rank, correlation, thread))
    same = ~_changes(thread[order], correlation[order], rank[order])
    paired = np.flatnonzero(same & backtrace[order] & (correlation[order] > 0))
    second, first = order[paired], order[paired - 1]
    stack = table["stack"].copy()
    stack[first] = stack[second]
    kept = np.ones(len(stack), dtype=bool)
    kept[second] = False
    return {name: values[kept] for name, values in {**table, "stack": stack}.items()}


def _changes(*columns: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return where a row differs from the one before it in any column; the first row does."""
    changed = np.zeros(len(columns[0]), dtype=bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return changed
