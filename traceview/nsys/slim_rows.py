"""Which rows of an export's tables a part of its trace consists of, as row numbers of SQLite."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from instrument.naming import FACTS_PREFIX
from traceview.nsys import schema
from traceview.nsys.calls import read_api
from traceview.nsys.capture import domain_rows, nvtx_text, string_join
from traceview.nsys.columns import read_columns
from traceview.nsys.names import process_of, thread_of
from traceview.nsys.ranges import NEVER_CLOSED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.model import Calls, Flags, Ints, Ranges, Trace
    from traceview.nsys.calls import ApiRows
    from traceview.nsys.database import Database
    from traceview.nsys.schema import Source

    Table = dict[str, Ints]

STACKS_TABLE = "CUDA_CALLCHAINS"
PYTHON_DOMAIN = "Python Backtrace"
"""Begins the domain of the marks that hold the Python stack of a call; each starts with the call's backtrace row."""

_TIMED = (schema.KERNELS, schema.COPIES, schema.MEMSETS, schema.GRAPHS)
_BY_CALL = (schema.EVENT_RECORDS, schema.SYNCHRONISATIONS)
_PLACE = ("device", "context", "green", "stream")
_CALL_KEY = ("tid", "correlation", "start", "end", "name")
_STACK_KEY = ("tid", "correlation", "stack")


def rows_of(database: Database, part: Trace) -> dict[str, Ints]:
    """Return, by table, the rows that hold ``part``, which was read from this export and reduced.

    Rows are told by what they say: operations by time and stream, calls and ranges by time and thread, records and
    waits by their calls. A call brings its stacks, a range its domain; all facts marks belong to every part.
    """
    found: dict[str, Ints] = {}
    last = 0
    for source in _TIMED:
        table = read_columns(database, source)
        last = max(last, int(table["end"].max(initial=0)))
        _add(database, found, source, _operations_of(part, table))
    raw, api = read_columns(database, schema.CALLS), read_api(database)
    last = max(last, int(raw["end"].max(initial=0)))
    own = _calls_of(part, api)
    chosen = _call_rows(raw, {name: values[own] for name, values in api.table.items()})
    _add(database, found, schema.CALLS, chosen)
    for source in _BY_CALL:
        table = read_columns(database, source)
        call = api.find(process_of(table["pid"]), table["correlation"])
        # what no call is known of belongs to every part
        _add(database, found, source, (call < 0) | np.append(own, True)[call])
    _add_stacks(database, found, np.unique(raw["stack"][chosen]))
    backtraces = chosen & (raw["event_class"] == schema.BACKTRACE_CLASS)
    _add_nvtx(
        database,
        found,
        (part.ranges, _threads(part, part.ranges), last),
        (raw["tid"][backtraces], raw["start"][backtraces]),
    )
    return found


def among(rows: Sequence[Ints], chosen: Sequence[Ints]) -> Flags:
    """Return which rows, given as columns, are equal to one of the chosen rows in every column."""
    columns = [np.concatenate(pair).astype(np.int64) for pair in zip(rows, chosen, strict=True)]
    order = np.lexsort(columns)
    fresh = np.zeros(len(order), dtype=bool)
    for column in columns:
        fresh[1:] |= column[order][1:] != column[order][:-1]
    group = np.empty(len(order), dtype=np.int64)
    group[order] = np.cumsum(fresh)
    count = len(rows[0])
    found: Flags = np.isin(group[:count], group[count:])
    return found


def _operations_of(part: Trace, table: Table) -> Flags:
    """Return which rows of a table are operations or migrations of the part."""
    streams = np.array(
        [(one.process, one.device, one.context, one.green_context, one.number) for one in part.streams], dtype=np.int64
    ).reshape(-1, 5)
    operations, migrations = part.operations, part.migrations
    times = [table["start"], np.maximum(table["end"], table["start"]), process_of(table["pid"])]
    works = among(
        [*times, *(table[name] for name in _PLACE)],
        [operations.start, operations.end, *streams[operations.stream].T],
    )
    moves = among([*times, table["device"]], [migrations.start, migrations.end, migrations.process, migrations.device])
    return works | moves


def _calls_of(part: Trace, api: ApiRows) -> Flags:
    """Return which calls of the export are calls of the part."""
    table, calls = api.table, part.calls
    return among(
        [process_of(table["tid"]), thread_of(table["tid"]), table["start"], np.maximum(table["end"], table["start"])],
        [*_threads(part, calls), calls.start, calls.end],
    )


def _call_rows(raw: Table, own: Table) -> Flags:
    """Return which API rows are the calls ``own``, with the second row that a call has where stacks were captured."""
    rows = among([raw[name] for name in _CALL_KEY], [own[name] for name in _CALL_KEY])
    backtrace = (raw["event_class"] == schema.BACKTRACE_CLASS) & (raw["stack"] >= 0)
    seconds: Flags = backtrace & among([raw[name] for name in _STACK_KEY], [own[name] for name in _STACK_KEY])
    return rows | seconds


def _threads(part: Trace, rows: Calls | Ranges) -> tuple[Ints, Ints]:
    """Return the process id and the thread id of each row."""
    known = np.array([(one.process, one.number) for one in part.threads], dtype=np.int64).reshape(-1, 2)
    process, number = known[rows.thread].T
    return process, number


def _add(database: Database, found: dict[str, Ints], source: Source, keep: Flags) -> None:
    """Enter the chosen rows of a source's table; ``keep`` has one element for each row in row order."""
    table = next((name for name in source.tables if name in database.tables), None)
    if table is not None:
        stored = stored_name(database, table)
        found[table] = _numbers(database, f'SELECT rowid FROM "{stored}" ORDER BY rowid')[keep]  # noqa: S608


def stored_name(database: Database, table: str) -> str:
    """Return the name under which the file holds a table: its own, or the newest with a version behind it."""
    names = [str(name) for (name,) in database.rows("SELECT name FROM main.sqlite_master WHERE type = 'table'")]
    versions = [(int(found[1]), name) for name in names if (found := re.fullmatch(rf"{re.escape(table)}_V(\d+)", name))]
    return table if table in names or not versions else max(versions)[1]


def _integer(column: str, default: int) -> str:
    """Return the SQL for a column's integer, and for a default where it holds something else or nothing."""
    return f"CASE typeof({column}) WHEN 'integer' THEN {column} ELSE {default} END"


def _numbers(database: Database, sql: str) -> Ints:
    return np.array(database.rows(sql), dtype=np.int64).reshape(-1)


def _add_stacks(database: Database, found: dict[str, Ints], stacks: Ints) -> None:
    if "id" in database.tables.get(STACKS_TABLE, frozenset()):
        query = f'SELECT rowid, {_integer("id", -1)} FROM "{STACKS_TABLE}" ORDER BY rowid'  # noqa: S608
        pairs = _numbers(database, query).reshape(-1, 2)
        found[STACKS_TABLE] = pairs[np.isin(pairs[:, 1], stacks), 0]


def _add_nvtx(
    database: Database,
    found: dict[str, Ints],
    ranges: tuple[Ranges, tuple[Ints, Ints], int],
    backtraces: tuple[Ints, Ints],
) -> None:
    """Enter the part's ranges, the facts marks, the Python stacks of its calls, and the domains of all these.

    ``ranges`` come with their processes and threads and the end of the whole trace, where ranges end that were never
    closed; ``backtraces`` are the thread and start of the calls that may have a Python stack.
    """
    text = nvtx_text(database)
    if text is None:
        return
    row, kind, start, end, tid, domain, is_facts = _nvtx_rows(database, text)
    process, thread = process_of(tid), thread_of(tid)
    own, (own_process, own_thread), last = ranges
    closed = np.maximum(np.where(end == NEVER_CLOSED, last, end), start)
    in_part = among([start, closed, process, thread], [own.start, own.end, own_process, own_thread])
    python = [((one or 0) >> 24 & 0xFFFFFF, number) for one, number, name in domain_rows(database)
              if name.startswith(PYTHON_DOMAIN)]  # fmt: skip
    of_python = among([process, domain], list(np.array(python, dtype=np.int64).reshape(-1, 2).T))
    kept = np.isin(kind, schema.NVTX_RANGES) & in_part
    kept |= (kind == schema.NVTX_MARK) & ((is_facts != 0) | (of_python & among([tid, start], backtraces)))
    kept |= (kind == schema.NVTX_DOMAIN) & among([process, domain], [process[kept], domain[kept]])
    found[schema.NVTX_TABLE] = row[kept]


def _nvtx_rows(database: Database, text: str) -> Ints:
    """Return row number, type, start, end, thread, domain, and whether it is a facts mark, of each event that may stay.

    Those are ranges, marks and domains.
    """
    domain = _integer("n.domainId", 0) if "domainId" in database.tables[schema.NVTX_TABLE] else "0"
    start, end = _integer("n.start", schema.REQUIRED), _integer("n.end", NEVER_CLOSED)
    types = ", ".join(str(number) for number in (*schema.NVTX_RANGES, schema.NVTX_MARK, schema.NVTX_DOMAIN))
    query = (
        f"SELECT n.rowid, n.eventType, {start}, {end}, {_integer('n.globalTid', 0)}, {domain}, "  # noqa: S608
        f"{text} LIKE '{FACTS_PREFIX}{{%' FROM NVTX_EVENTS AS n {string_join(database)} "
        f"WHERE n.eventType IN ({types}) ORDER BY n.rowid"
    )
    return _numbers(database, query).reshape(-1, 7).T
