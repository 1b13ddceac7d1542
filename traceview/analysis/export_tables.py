"""A trace as plain tables for other tools: what ran, which forward and layer it belongs to, and why compute idled.

Every table is a mapping from column to values of one length. Columns, units and meanings are in ``export_columns``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceview import report
from traceview.analysis.accounting import account
from traceview.analysis.busy import Busy
from traceview.analysis.export_columns import EXPORTED
from traceview.analysis.forwards import find_forwards
from traceview.analysis.roles import Role
from traceview.analysis.timeline_causes import name_causes
from traceview.analysis.timeline_rows import Names
from traceview.model import CallKind, Direction, Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from enum import IntEnum

    from traceview.analysis.forwards import Forward, ForwardOptions
    from traceview.model import Ints, Trace

    Columns = dict[str, Any]

_FIELDS = {"bytes": "n_bytes", "range": "range_name"}
"""fields of the report whose columns have another name"""


def export_tables(trace: Trace, options: ForwardOptions, made: report.Report) -> dict[str, Columns]:
    """Return every table by name; ``made`` is the report of the trace with the same options."""
    found = find_forwards(trace, options)
    return {
        "operations": _operations(trace, found),
        "calls": _calls(trace),
        "ranges": _ranges(trace),
        "holes": _holes(trace, found),
        "forwards": _forwards(made.forwards),
        "layers": _layers(made.forwards),
        "overlap": _records("overlap", made.overlap),
        "copies": _records("copies", made.copies),
        "syncs": _records("syncs", made.syncs),
    }


def _operations(trace: Trace, found: Iterable[Forward]) -> Columns:
    operations = trace.operations
    forward, role, layer = (np.full(len(operations), -1, dtype=np.int64) for _ in range(3))
    for one in found:
        forward[one.operations], role[one.operations], layer[one.operations] = one.index, one.role, one.layer
    streams = _by_stream(trace)
    return {
        "operation": np.arange(len(operations)),
        **{name: column[operations.stream] for name, column in streams.items()},
        "start_ns": operations.start,
        "end_ns": operations.end,
        "kind": _words(Kind, operations.kind),
        "name": _texts(trace.names, operations.name),
        "direction": _words(Direction, operations.direction, none=Direction.OTHER),
        "memory": _words(Memory, operations.memory, where=operations.kind == Kind.COPY),
        "bytes": operations.n_bytes,
        "pieces": operations.pieces,
        "call": operations.launch,
        "forward": forward,
        "role": _words(Role, role, none=-1),
        "layer": layer,
    }


def _by_stream(trace: Trace) -> dict[str, Ints]:
    names = {"process": "process", "device": "device", "context": "context", "stream": "number"}
    return {
        column: np.array([getattr(stream, field) for stream in trace.streams], dtype=np.int64)
        for column, field in names.items()
    }


def _calls(trace: Trace) -> Columns:
    calls = trace.calls
    return {
        "call": np.arange(len(calls)),
        **_by_thread(trace, calls.thread),
        "start_ns": calls.start,
        "end_ns": calls.end,
        "name": _texts(trace.names, calls.name),
        "kind": _words(CallKind, calls.kind),
    }


def _ranges(trace: Trace) -> Columns:
    ranges = trace.ranges
    return {
        **_by_thread(trace, ranges.thread),
        "start_ns": ranges.start,
        "end_ns": ranges.end,
        "name": _texts(trace.names, ranges.name),
        "domain": _texts(trace.names, ranges.domain),
        "payload": ranges.payload,
    }


def _by_thread(trace: Trace, thread: Ints) -> dict[str, Ints]:
    process = np.array([one.process for one in trace.threads], dtype=np.int64)
    number = np.array([one.number for one in trace.threads], dtype=np.int64)
    return {"process": process[thread], "thread": number[thread]}


def _holes(trace: Trace, found: Sequence[Forward]) -> Columns:
    busy = Busy(trace)
    parts = [_holes_of(busy, forward) for forward in found]
    return {name: [value for part in parts for value in part[name]] for name in _names("holes")}


def _holes_of(busy: Busy, forward: Forward) -> Columns:
    holes = account(busy.trace, forward, busy).holes
    names = Names(busy.trace)
    cause = name_causes(busy, forward, holes, names)
    layer = np.full(len(busy.trace.operations), -1, dtype=np.int64)
    layer[forward.operations] = forward.layer
    return {
        "forward": np.full(len(holes.start), forward.index),
        "device": np.full(len(holes.start), forward.device),
        "start_ns": holes.start,
        "end_ns": holes.end,
        "category": _texts(report.CATEGORIES, holes.category),
        "layer": layer[holes.before],
        "waits_for": _texts(names.texts(), cause),
        "before": holes.before,
    }


def _forwards(forwards: Iterable[report.Forward]) -> Columns:
    listed = list(forwards)
    spent = {f"{name}_ns": name for name in report.CATEGORIES}
    columns: Columns = {}
    for name in _names("forwards"):
        if name in spent:
            columns[name] = [one.measures.accounting[spent[name]] for one in listed]
        else:
            columns[name] = [getattr(one if hasattr(one, name) else one.measures, name) for one in listed]
    return columns


def _layers(forwards: Iterable[report.Forward]) -> Columns:
    listed = [(one, layer) for one in forwards for layer in one.layers]
    columns: Columns = {"forward": [one.index for one, _ in listed], "device": [one.device for one, _ in listed]}
    return columns | {name: [getattr(layer, name) for _, layer in listed] for name in _names("layers")[2:]}


def _records(table: str, records: Iterable[Any]) -> Columns:
    listed = list(records)
    return {name: [_plain(getattr(one, _FIELDS.get(name, name))) for one in listed] for name in _names(table)}


def _names(table: str) -> list[str]:
    return [column.name for column in EXPORTED[table].columns]


def _plain(value: Any) -> Any:
    """Return what one cell can hold: the frames of a call stack become one text."""
    return " < ".join(value) if isinstance(value, tuple) else value


def _words(kind: type[IntEnum], values: Ints, none: int | None = None, where: Any = None) -> list[str | None]:
    words: Mapping[int, str | None] = {int(one): None if one == none else one.name.lower() for one in kind}
    chosen = np.ones(len(values), dtype=bool) if where is None else where
    return [
        words.get(value) if wanted else None for value, wanted in zip(values.tolist(), chosen.tolist(), strict=True)
    ]


def _texts(names: Sequence[str], index: Ints) -> list[str | None]:
    return [names[one] if one >= 0 else None for one in index.tolist()]
