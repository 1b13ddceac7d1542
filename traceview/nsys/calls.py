"""Reads API rows: one row per call, and the keys by which operations find their launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.model import Calls
from traceview.nsys import schema
from traceview.nsys.columns import read_columns
from traceview.nsys.names import distinct, process_of, run_starts, small, spread
from traceview.nsys.order import time_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.model import Flags, Ints
    from traceview.nsys.database import Database
    from traceview.nsys.names import NameTable

    Table = dict[str, Ints]

_MAX_CORRELATION = 1 << 40
_FIND_ROWS = 1 << 18
_TIES = ("tid", "event_class", "correlation", "name", "stack")
"""What orders calls that start together and last as long; of others the longer comes first, as it holds the shorter."""


@dataclass(frozen=True)
class ApiRows:
    """API rows in start order, one per call, and what finds a call by process and correlation id."""

    table: Table
    processes: Ints
    """sorted process ids that made calls"""
    keys: Ints
    """sorted (process, correlation id) keys"""
    rows: Ints | None
    """for each key, the row of its call; None where that is the place of the key"""

    @property
    def traced(self) -> Ints:
        """Return when the row began that carries each call's stack: the second one of a call recorded twice."""
        return self.table.get("traced", self.table["start"])

    def find(self, process: Ints, correlation: Ints) -> Ints:
        """Return the row of the call with each process's correlation id, or -1."""
        found = np.full(len(process), -1, dtype=np.int64)
        # in parts, since a large trace's keys would stand in memory several times over
        for first in range(0, len(process) if len(self.keys) else 0, _FIND_ROWS):
            part = slice(first, first + _FIND_ROWS)
            key = _keys(self.processes, process[part], correlation[part])
            at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
            rows = at if self.rows is None else self.rows[at]
            found[part] = np.where((key >= 0) & (self.keys[at] == key), rows, -1)
        return found


def read_api(database: Database, keep: Callable[[Table], Flags] | None = None) -> ApiRows:
    """Return the export's API calls, or those that ``keep`` keeps, in start order.

    A call recorded twice is one row with its stack.
    """
    table = read_columns(database, schema.CALLS, keep)
    order = time_order(table["start"], lambda rows: (-table["end"][rows], *(table[name][rows] for name in _TIES)))
    if order is not None:
        table = {name: values[order] for name, values in table.items()}
    starts = run_starts(table["tid"])
    processes = distinct(process_of(table["tid"][starts]))
    merged = _merge_backtraces(table)
    if merged is not table:
        table, starts = merged, run_starts(merged["tid"])
    process = spread(process_of(table["tid"][starts]), starts, len(table["tid"]))
    keys, rows = _ordered_keys(_keys(processes, process, table["correlation"]))
    return ApiRows(table, processes, keys, rows)


def make_calls(database: Database, api: ApiRows, thread: Ints, names: NameTable) -> Calls:
    """Return API rows as calls; ``thread`` is the dense thread index of each row."""
    table = api.table
    raw = distinct(table["name"])
    texts = {number: schema.documented_name(text) for number, text in database.strings(raw[raw >= 0]).items()}
    name = names.add_all(table["name"], texts)
    kinds = small([*(schema.call_kind(text) for text in names.texts), 0])
    return Calls(
        start=table["start"],
        end=np.maximum(table["end"], table["start"], out=table["end"]),
        thread=thread,
        name=name,
        kind=kinds[name],
        stack=table["stack"],
    )


def _keys(processes: Ints, process: Ints, correlation: Ints) -> Ints:
    """Return one number per (process, correlation id), or -1 where there is none or the process is unknown."""
    if not len(processes):
        return np.full(len(process), -1, dtype=np.int64)
    valid = (correlation > 0) & (correlation < _MAX_CORRELATION)
    if len(processes) == 1:
        valid &= process == processes[0]
        return correlation if valid.all() else np.where(valid, correlation, -1)
    index = np.minimum(np.searchsorted(processes, process), len(processes) - 1)
    valid &= processes[index] == process
    return np.where(valid, index * _MAX_CORRELATION + correlation, -1)


def _ordered_keys(keys: Ints) -> tuple[Ints, Ints | None]:
    """Return the keys that are not -1 in ascending order, and the row of each, None where they stand so already."""
    if np.all(keys >= 0) and np.all(keys[1:] >= keys[:-1]):
        return keys, None
    return _sorted_keys(keys)


def _sorted_keys(keys: Ints) -> tuple[Ints, Ints]:
    """Return the keys that are not -1 in ascending order, and the row of each; equal keys stand in row order."""
    rows = np.flatnonzero(keys >= 0)
    if len(rows) < len(keys):
        keys = keys[rows]
    if np.any(keys[1:] < keys[:-1]):
        order = np.argsort(keys, kind="stable")
        keys, rows = keys[order], rows[order]
    return keys, rows


def _merge_backtraces(table: Table) -> Table:
    """Give the stack and the start of each backtrace row to the plain row of the same call and drop the backtrace row.

    Rows of one thread and correlation id are paired in start order; a backtrace row without a plain one stays.
    """
    backtrace = table["event_class"] == schema.BACKTRACE_CLASS
    if not backtrace.any():
        return table
    thread = np.searchsorted(distinct(table["tid"]), table["tid"])
    correlation = table["correlation"]
    key = np.where((correlation > 0) & (correlation < _MAX_CORRELATION), thread * _MAX_CORRELATION + correlation, -1)
    plain_keys, plain = _sorted_keys(np.where(backtrace, -1, key))
    keys, second = _sorted_keys(np.where(backtrace, key, -1))
    rank = np.arange(len(keys)) - np.searchsorted(keys, keys, side="left")
    at = np.searchsorted(plain_keys, keys, side="left") + rank
    paired = np.flatnonzero(at < len(plain_keys))
    paired = paired[plain_keys[at[paired]] == keys[paired]]
    stack, traced = table["stack"].copy(), table["start"].copy()
    stack[plain[at[paired]]] = table["stack"][second[paired]]
    traced[plain[at[paired]]] = table["start"][second[paired]]
    kept = np.ones(len(stack), dtype=bool)
    kept[second[paired]] = False
    return {name: values[kept] for name, values in {**table, "stack": stack, "traced": traced}.items()}
