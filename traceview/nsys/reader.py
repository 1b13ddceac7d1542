"""Reads an Nsight Systems export into a :class:`~traceview.model.Trace`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceview.errors import InputError
from traceview.model import Direction, Records, Trace
from traceview.nsys import schema
from traceview.nsys.calls import make_calls, read_api
from traceview.nsys.callstacks import read_stacks
from traceview.nsys.capture import read_capture
from traceview.nsys.columns import read_columns
from traceview.nsys.database import EXPORT_HINT
from traceview.nsys.metrics import read_link_samples, read_nic_samples
from traceview.nsys.names import NameTable, index_streams, index_threads, process_of
from traceview.nsys.operations import (
    SOURCES,
    make_migrations,
    make_operations,
    migration_kinds,
    read_operation_tables,
)
from traceview.nsys.pruning import plan_pruning
from traceview.nsys.ranges import NEVER_CLOSED, make_ranges, read_ranges

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.model import Ints, Operations
    from traceview.nsys.calls import ApiRows
    from traceview.nsys.database import Database
    from traceview.nsys.pruning import Pruning

    Table = dict[str, Ints]


def read_database(
    database: Database, *, metrics: bool = False, window: Callable[[int], tuple[int, int]] | None = None
) -> Trace:
    """Return everything that the analyses read from an open export; GPU metrics, which are large, only on request.

    ``window`` gives a first and last moment by the moment of the first event: then what lies between them is read and
    what it needs, and some rows beside it.

    Raises ``InputError`` where the file is damaged, is no export, or holds neither GPU nor API rows.
    """
    if schema.STRINGS_TABLE in database.tables:
        database.require(schema.STRINGS_TABLE, ("id", "value"))
    range_rows = read_ranges(database)
    first_range = int(range_rows.start.min()) if len(range_rows.start) else None
    pruning = None if window is None else _plan(database, first_range, window)
    tables, migrations = read_operation_tables(database, None if pruning is None else pruning.operations)
    records, synchronisations = (read_columns(database, one) for one in (schema.EVENT_RECORDS, schema.SYNCHRONISATIONS))
    if pruning is not None:
        pruning.remember((records, synchronisations))
    api = read_api(database, None if pruning is None else pruning.calls)
    if not any(len(table["start"]) for table in (*tables.values(), api.table, migrations)):
        raise _nothing_captured(database)
    waits, stream_syncs = _split_synchronisations(synchronisations)
    streams, stream_index = index_streams(tables.values(), (records, waits, stream_syncs))
    threads, (call_thread, range_thread) = index_threads((api.table["tid"], range_rows.tid))
    names = NameTable()
    operations = make_operations(database, tables, stream_index[: len(tables)], api, names)
    calls = make_calls(database, api, call_thread, names)
    stack, stacks = read_stacks(database, api, calls, operations)
    closed = range_rows.end[range_rows.end != NEVER_CLOSED]
    last = max((int(ends.max()) for ends in (operations.end, calls.end, closed) if len(ends)), default=0)
    ranges = make_ranges(database, range_rows, range_thread, names, last)
    devices = {stream.device for stream in streams} | set(migrations["device"].tolist()) | _peers(operations)
    processes = {stream.process for stream in streams} | {thread.process for thread in threads}
    return Trace(
        capture=read_capture(database, devices, processes),
        names=tuple(names.texts),
        streams=streams,
        threads=threads,
        operations=operations,
        calls=replace(calls, stack=stack),
        ranges=ranges,
        event_records=_make_records(records, stream_index[-3], api),
        event_waits=_make_records(waits, stream_index[-2], api),
        stream_syncs=_make_records(stream_syncs, stream_index[-1], api),
        migrations=make_migrations(migrations),
        stacks=stacks,
        nics=read_nic_samples(database),
        links=read_link_samples(database) if metrics else None,
    )


def _plan(database: Database, first_range: int | None, window: Callable[[int], tuple[int, int]]) -> Pruning | None:
    return plan_pruning(database, tuple(SOURCES.values()), migration_kinds(database), first_range, window)


def _peers(operations: Operations) -> set[int]:
    """Return the devices at either end of peer copies; the far one need not run anything itself."""
    peer = operations.direction == Direction.P2P
    return {*operations.source[peer].tolist(), *operations.target[peer].tolist()} - {-1}


def _split_synchronisations(table: Table) -> tuple[Table, Table]:
    """Return the rows of stream waits for an event and of host waits for a stream.

    The type numbers changed between versions, so rows are told apart by which ids they lack.
    """
    has_stream, has_event = table["stream"] != schema.INVALID_ID, table["event"] != schema.INVALID_ID
    waits = {name: values[has_stream & has_event] for name, values in table.items()}
    streams = {name: values[has_stream & ~has_event] for name, values in table.items()}
    return waits, streams


def _make_records(table: Table, stream: Ints, api: ApiRows) -> Records:
    records = Records(
        call=api.find(process_of(table["pid"]), table["correlation"]),
        stream=stream,
        event=table["event"],
        sync=table["sync"],
    )
    return records.take(np.lexsort((records.sync, records.event, records.stream, records.call)))


def _nothing_captured(database: Database) -> InputError:
    """Return the error for a file without GPU and API rows: no export at all, or an export without CUDA."""
    known = {"StringIds", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", "EXPORT_META_DATA", "ANALYSIS_DETAILS"}
    if not known.intersection(database.tables):
        return InputError(f"{database.path} is no Nsight Systems export", EXPORT_HINT)
    return InputError(
        f"{database.path} holds neither GPU work nor CUDA API calls", "capture with: nsys profile --trace=cuda,nvtx"
    )
