"""The report as JSON: the contract ``traceview.report/1``, which ``report.schema.json`` beside this file describes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from traceview.report import SCHEMA, CopyGroup, ExposedCopy, Forward, Overlap, Report, Sync

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEYS = {
    "copy_class": "class",
    "transfer_class": "class",
    "n_bytes": "bytes",
    "range_name": "range",
    "beside": "with",
}
"""JSON keys that are no names in Python, or would hide one"""

_NESTED = ("layers", "fit", "stages")
"""fields that hold results of their own"""

_LAST = {
    Overlap: ("process",),
    ExposedCopy: ("process",),
    CopyGroup: ("gap_median_ns", "host_median_ns"),
    Sync: ("boundary", "direction"),
}
"""fields that the contract does not fix: they come after those that it does"""


def render(report: Report, *, indent: int | None = 2) -> str:
    """Return the report as one strict JSON object, in ASCII so that no name can move a terminal's cursor."""
    return json.dumps(as_dict(report), indent=indent, allow_nan=False, ensure_ascii=True) + "\n"


def as_dict(report: Report) -> dict[str, Any]:
    """Return the report as plain dicts, lists, strings and numbers with the keys of the contract, in its order.

    Times are int ns, sizes int bytes, rates float GB/s. A field that the trace cannot answer is absent, unless its
    ``None`` is an answer (``NULLABLE`` of its class); ``summary`` is None when nothing was measured.
    """
    sections = {entry.name: getattr(report, entry.name) for entry in fields(report)}
    return {"schema": SCHEMA} | {name: section and _section(section) for name, section in sections.items()}


def schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the report."""
    source = resources.files("traceview.render").joinpath("report.schema.json")
    loaded: dict[str, Any] = json.loads(source.read_text(encoding="utf-8"))
    return loaded


def _section(section: object) -> object:
    return [_object(row) for row in section] if isinstance(section, tuple) else _object(section)


def _object(record: Any) -> dict[str, Any]:
    """Return a result's fields by JSON key, with the measures of a forward or of the summary laid out flat."""
    result: dict[str, Any] = {}
    nullable: frozenset[str] = getattr(record, "NULLABLE", frozenset())
    for name in _ordered(record):
        value = getattr(record, name)
        if name == "measures":
            result |= _object(value)
        elif name in _NESTED:
            result[name] = _section(value)
        elif value is not None or name in nullable:
            result[_KEYS.get(name, name)] = _plain(value)
    return _layers_from_moved(result) if isinstance(record, Forward) else result


def _ordered(record: Any) -> Iterable[str]:
    names = [entry.name for entry in fields(record)]
    last = _LAST.get(type(record), ())
    return [name for name in names if name not in last] + list(last)


def _layers_from_moved(forward: dict[str, Any]) -> dict[str, Any]:
    """Return a forward with ``layers_from`` where the contract has it: amid the measures, after ``lead_in_ns``."""
    names = [name for name in forward if name != "layers_from"]
    names.insert(names.index("lead_in_ns") + 1, "layers_from")
    return {name: forward[name] for name in names}


def _plain(value: Any) -> Any:
    """Return ``value`` as what JSON can hold; NaN and infinity, which it cannot, become null."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value]
