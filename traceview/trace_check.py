"""Whether a trace that came from elsewhere than the reader is one that the analyses can walk through."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import numpy as np

from traceview import model
from traceview.model import CallKind, Columns, Direction, Kind, Memory, Trace

if TYPE_CHECKING:
    from enum import IntEnum

_POINTERS = {
    "operations": {"stream": "streams", "launch": "calls", "name": "names"},
    "calls": {"thread": "threads", "name": "names", "stack": "stacks"},
    "ranges": {"thread": "threads", "name": "names", "domain": "names"},
    "event_records": {"call": "calls", "stream": "streams"},
    "event_waits": {"call": "calls", "stream": "streams"},
    "stream_syncs": {"call": "calls", "stream": "streams"},
}
"""Columns that are indices, and what they point into."""

_NEEDED = ("stream", "thread")
"""Pointers that no row is without; the others may be -1."""

_WORDS: dict[str, dict[str, type[IntEnum]]] = {
    "operations": {"kind": Kind, "direction": Direction, "memory": Memory},
    "calls": {"kind": CallKind},
    "migrations": {"direction": Direction},
}
"""Columns that are numbers of words, without holes between them."""

_TIMED = ("operations", "calls", "ranges", "migrations")


def is_sound(trace: object) -> bool:
    """Return whether everything is of its type, columns have one length, indices point at something and times run."""
    return isinstance(trace, Trace) and _is_typed(trace) and _points(trace) and _says(trace) and _runs(trace)


def _runs(trace: Trace) -> bool:
    """Return whether rows are in order of start and none ends before it starts."""
    parts = [getattr(trace, name) for name in _TIMED]
    return all((one.end >= one.start).all() and (one.start[1:] >= one.start[:-1]).all() for one in parts)


def _points(trace: Trace) -> bool:
    for part, pointers in _POINTERS.items():
        for column, container in pointers.items():
            index = getattr(getattr(trace, part), column)
            least = 0 if column in _NEEDED else -1
            if len(index) and not least <= int(index.min()) <= int(index.max()) < len(getattr(trace, container)):
                return False
    return True


def _says(trace: Trace) -> bool:
    for part, columns in _WORDS.items():
        for column, words in columns.items():
            values = getattr(getattr(trace, part), column)
            if len(values) and not min(words) <= int(values.min()) <= int(values.max()) <= max(words):
                return False
    return True


def _is_typed(record: Any) -> bool:
    """Return whether each field of a record holds what it is annotated with, down to the last record in it."""
    if isinstance(record, Columns):
        return _is_table(record)
    hints = get_type_hints(type(record), _annotations())
    return all(_fits(getattr(record, one.name), hints[one.name]) for one in fields(record))


def _annotations() -> dict[str, Any]:
    """Return what the model's annotations mean where it imports for them only while types are checked."""
    from collections.abc import Mapping
    from pathlib import Path

    return vars(model) | {"Mapping": Mapping, "Path": Path, "Any": object, "Ints": np.ndarray}


def _is_table(table: Columns) -> bool:
    columns = [getattr(table, one.name) for one in fields(table)]
    arrays = all(isinstance(one, np.ndarray) and one.ndim == 1 and one.dtype.kind in "iu" for one in columns)
    return arrays and len({len(one) for one in columns}) == 1


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a value is of an annotated type: a class, a union, a tuple or a mapping of such."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is not None and issubclass(origin, dict | _annotations()["Mapping"]):
        return isinstance(value, dict) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if inner:
        return any(_fits(value, one) for one in inner)
    if isinstance(value, bool) or not isinstance(value, hint):
        return hint is object
    return not is_dataclass(value) or _is_typed(value)
