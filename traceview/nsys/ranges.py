"""Reads NVTX ranges with their names, domains and payloads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.errors import InputError
from traceview.model import Ranges
from traceview.nsys import schema
from traceview.nsys.capture import domain_rows, nvtx_text, string_join
from traceview.nsys.database import EXPORT_AGAIN
from traceview.nsys.names import process_of

if TYPE_CHECKING:
    from traceview.model import Ints
    from traceview.nsys.database import Database
    from traceview.nsys.names import NameTable

_PAYLOADS = ("uint64Value", "int64Value", "uint32Value", "int32Value")
NEVER_CLOSED = np.iinfo(np.int64).max


@dataclass(frozen=True)
class RangeRows:
    """NVTX ranges as stored: numbers as arrays of one length, texts beside them."""

    start: Ints
    end: Ints
    tid: Ints
    domain: Ints
    payload: Ints
    texts: list[str]


def read_ranges(database: Database) -> RangeRows:
    """Return push/pop and start/end ranges; one that was never closed has the end ``NEVER_CLOSED``.

    Raises ``InputError`` where a number is none, a time lies outside what int64 holds, or the file is damaged.
    """
    text = nvtx_text(database)
    if text is None:
        nothing = np.empty(0, dtype=np.int64)
        return RangeRows(nothing, nothing, nothing, nothing, nothing, [])
    database.require(schema.NVTX_TABLE, ("start", "end", "eventType", "globalTid"))
    present = database.tables[schema.NVTX_TABLE]
    carried = [f"n.{name}" for name in _PAYLOADS if name in present]
    domain_id = "COALESCE(n.domainId, 0)" if "domainId" in present else "0"
    types = ",".join(str(number) for number in schema.NVTX_RANGES)
    query = (
        f"SELECT n.start, COALESCE(n.end, {NEVER_CLOSED}), COALESCE(n.globalTid, 0), {domain_id}, "  # noqa: S608
        f"COALESCE({', '.join([*carried, '-1', '-1'])}), {text} "
        f"FROM NVTX_EVENTS AS n {string_join(database)} WHERE n.eventType IN ({types})"
    )
    rows = database.rows(query)
    numbers = np.array([row[:5] for row in rows] or np.empty((0, 5), dtype=np.int64))
    if numbers.dtype != np.int64:
        raise InputError(f"{database.path}: table {schema.NVTX_TABLE} holds a value that is no integer", EXPORT_AGAIN)
    start, end, tid, domain, payload = numbers.T.copy()
    low, high = schema.TIMES
    wrong = (start < low) | (start > high) | (end < low) | ((end > high) & (end != NEVER_CLOSED))
    if wrong.any():
        at = int(start[wrong][0]), int(end[wrong][0])
        raise InputError(f"{database.path}: table {schema.NVTX_TABLE} has a row from {at[0]} to {at[1]}", EXPORT_AGAIN)
    return RangeRows(start, end, tid, domain, payload, [str(row[5]) for row in rows])


def _process_of(tid: int | None) -> int:
    return int(process_of(np.array(tid or 0, dtype=np.int64)))


def make_ranges(database: Database, rows: RangeRows, thread: Ints, names: NameTable, last: int) -> Ranges:
    """Return ranges in start order, the longer first; one that was never closed ends with the trace, at ``last``.

    ``thread`` is the dense thread index of each row. Of ranges that agree in time the later in the alphabet is inside.
    """
    domains = {(_process_of(tid), number): names.add(name) for tid, number, name in sorted(domain_rows(database))}
    process = process_of(rows.tid).tolist()
    domain = [domains.get(key, -1) for key in zip(process, rows.domain.tolist(), strict=True)]
    texts = sorted(set(rows.texts))
    place = {text: number for number, text in enumerate(texts)}
    spelled = np.array([place[text] for text in rows.texts], dtype=np.int64)
    ranges = Ranges(
        start=rows.start,
        end=np.maximum(np.where(rows.end == NEVER_CLOSED, last, rows.end), rows.start),
        thread=thread,
        name=np.array([names.add(text) for text in texts], dtype=np.int64)[spelled],
        domain=np.array(domain, dtype=np.int64),
        payload=rows.payload,
    )
    return ranges.take(np.lexsort((ranges.payload, ranges.domain, spelled, ranges.thread, -ranges.end, ranges.start)))
