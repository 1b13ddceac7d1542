"""Reads the call stacks of blocking calls: C++ frames by call chain, Python frames by thread and time.

A capture with stacks holds one for every call, so tables have millions of rows; only those of calls that block are
looked up. Stacks of the operating system's own calls and of sampling are not read.
"""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

import numpy as np

from traceview.model import CallKind, Memory, NativeFrame, PythonFrame, Stack
from traceview.nsys import schema
from traceview.nsys.capture import domain_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from traceview.model import Calls, Ints, Operations
    from traceview.nsys.calls import ApiRows
    from traceview.nsys.database import Database

_CHAINS = "CUDA_CALLCHAINS"
_CHAIN_COLUMNS = frozenset({"id", "symbol", "module", "stackDepth"})
_PYTHON_DOMAIN = "Python Backtrace"
_LARGEST_ID = (1 << 63) - 1
_IDS_PER_QUERY = 500


def read_stacks(
    database: Database, api: ApiRows, calls: Calls, operations: Operations
) -> tuple[Ints, tuple[Stack, ...]]:
    """Return, for each call, the index of its stack or -1, and the distinct stacks of the calls that block."""
    index = np.full(len(calls), -1, dtype="int32")
    rows = _blocking(calls, operations)
    native = _native_stacks(database, np.unique(calls.stack[rows]))
    python = _python_stacks(database, api, rows)
    if not native and not python:
        return index, ()
    found: dict[Stack, int] = {}
    for row, chain in zip(rows.tolist(), calls.stack[rows].tolist(), strict=True):
        stack = Stack(native.get(chain, ()), python.get(row, ()))
        if stack.native or stack.python:
            index[row] = found.setdefault(stack, len(found))
    return index, tuple(found)


def _blocking(calls: Calls, operations: Operations) -> Ints:
    """Return the calls that block by their name, or because they copy pageable memory."""
    blocks = np.isin(calls.kind, (CallKind.SYNC, CallKind.BLOCKING))
    blocks[operations.launch[(operations.memory == Memory.PAGEABLE) & (operations.launch >= 0)]] = True
    return np.flatnonzero(blocks)


def _native_stacks(database: Database, ids: Ints) -> dict[int, tuple[NativeFrame, ...]]:
    """Return the frames of each call chain, innermost first."""
    if not database.tables.get(_CHAINS, frozenset()) >= _CHAIN_COLUMNS:
        return {}
    rows: list[tuple[int, int, int, int]] = []
    for some in _portions(ids[ids >= 0].tolist()):
        marks = ",".join("?" * len(some))
        query = f"SELECT id, stackDepth, symbol, module FROM {_CHAINS} WHERE id IN ({marks})"  # noqa: S608
        rows += [row for row in database.rows(query, some) if all(isinstance(value, int) for value in row)]
    texts = database.strings({number for *_, symbol, module in rows for number in (symbol, module)})
    frames: dict[int, list[NativeFrame]] = {}
    for chain, _, symbol, module in sorted(rows):
        frames.setdefault(chain, []).append(NativeFrame(texts.get(symbol, ""), texts.get(module, "")))
    return {chain: tuple(own) for chain, own in frames.items()}


def _python_stacks(database: Database, api: ApiRows, rows: Ints) -> dict[int, tuple[PythonFrame, ...]]:
    """Return the Python frames of each of these calls that has some, innermost first.

    A mark in Python's domain starts when the call's backtrace row does, on the same thread.
    """
    marks = _python_marks(database)
    if not marks or not len(rows):
        return {}
    times = zip(api.table["tid"][rows].tolist(), api.traced[rows].tolist(), strict=True)
    wanted = {mark: row for row, key in zip(rows.tolist(), times, strict=True) if (mark := marks.get(key)) is not None}
    texts = _json_texts(database, sorted(wanted))
    distinct = {text: _frame_ids(text) for text in set(texts.values())}
    ids = {number for frames in distinct.values() for function, file, _ in frames for number in (function, file)}
    strings = database.strings(ids)
    frames = {text: tuple(_python_frames(found, strings)) for text, found in distinct.items()}
    return {row: frames[texts[mark]] for mark, row in wanted.items() if mark in texts}


def _python_marks(database: Database) -> dict[tuple[int, int], int]:
    """Return the row id of each Python mark that carries frames, by thread and start."""
    columns = database.tables.get(schema.NVTX_TABLE, frozenset())
    payload = [name for name in ("jsonText", "jsonTextId") if name in columns]
    domains = sorted({number for _, number, name in domain_rows(database) if name.startswith(_PYTHON_DOMAIN)})
    if not payload or not domains:
        return {}
    query = (
        f"SELECT globalTid, start, rowid FROM {schema.NVTX_TABLE} WHERE eventType = ? "  # noqa: S608
        f"AND domainId IN ({','.join('?' * len(domains))}) AND COALESCE({', '.join([*payload, 'NULL'])}) IS NOT NULL"
    )
    return {(tid, start): row for tid, start, row in database.rows(query, (schema.NVTX_MARK, *domains))}


def _json_texts(database: Database, marks: Sequence[int]) -> dict[int, str]:
    columns = database.tables[schema.NVTX_TABLE]
    stored = ["n.jsonText"] if "jsonText" in columns else []
    joined = "jsonTextId" in columns and "StringIds" in database.tables
    join = "LEFT JOIN StringIds AS s ON s.id = n.jsonTextId" if joined else ""
    text = f"COALESCE({', '.join([*stored, *(['s.value'] if joined else []), 'NULL', 'NULL'])})"
    found: dict[int, str] = {}
    for some in _portions(marks):
        wanted = ",".join("?" * len(some))
        query = f"SELECT n.rowid, {text} FROM {schema.NVTX_TABLE} AS n {join} WHERE n.rowid IN ({wanted})"  # noqa: S608
        found.update({row: str(value) for row, value in database.rows(query, some) if value is not None})
    return found


def _frame_ids(text: str) -> list[tuple[int, int, int]]:
    """Return (function id, file id, line) of each frame of a mark's payload; none where it is not what it should be."""
    try:
        payload = json.loads(text)
        inner = next((value for name, value in payload.items() if name.startswith(_PYTHON_DOMAIN)), payload)
        frames = [(int(frame["Function"]), int(frame["File"]), int(frame["Line"])) for frame in inner["Frames"]]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return []
    return frames if all(0 <= number <= _LARGEST_ID for frame in frames for number in frame) else []


def _python_frames(found: Iterable[tuple[int, int, int]], strings: Mapping[int, str]) -> Iterator[PythonFrame]:
    for function, file, line in found:
        yield PythonFrame(html.unescape(strings.get(function, "?")), strings.get(file, "?"), line)


def _portions(values: Sequence[int]) -> Iterator[Sequence[int]]:
    for first in range(0, len(values), _IDS_PER_QUERY):
        yield values[first : first + _IDS_PER_QUERY]
