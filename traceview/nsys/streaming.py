"""Whole columns of a table through ADBC's SQLite driver, by two threads.

Each thread has a connection of its own and reads ranges of row numbers in turn. A range is one query whose rows all
fit in its first batch: the driver reads the first batch while it executes the query, where Python lets other threads
run, and any further one while nanoarrow holds the interpreter's lock.
"""

from __future__ import annotations

import sqlite3
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from traceview.model import Ints
    from traceview.nsys.database import Database

BATCH_ROWS = 65_536
_THREADS = 2
_WAITING = 2
"""Ranges that are read ahead for each thread: what is read waits in memory."""


class Block(NamedTuple):
    """Some rows of a table."""

    rows: int
    columns: dict[str, Ints]
    share: float
    """about which part of the table it is, 0 where nobody knows"""


class UntypedError(Exception):
    """A column holds something else than integers, or the file is damaged: SQLite itself can say what."""


def select(table: str, defaults: Mapping[str, int]) -> str:
    """Return the query for some columns of a table, each with the value that stands for NULL."""
    expressions = [f'COALESCE("{name}", {default})' for name, default in defaults.items()] or ["0"]
    return f'SELECT {", ".join(expressions)} FROM "{table}"'  # noqa: S608


def stream_table(database: Database, table: str, defaults: Mapping[str, int]) -> Iterator[Block]:
    """Yield a table's columns in blocks, in row order; raises ``UntypedError`` where one is no column of integers."""
    import adbc_driver_manager

    query = select(table, defaults)
    ranges = _ranges(database, table)
    try:
        with ExitStack() as stack:
            if len(ranges) < 2:
                yield from _blocks(_connect(database, stack), query, defaults, len(ranges))
                return
            idle: SimpleQueue[Any] = SimpleQueue()
            for _ in range(_THREADS):
                idle.put(_connect(database, stack))

            def read(bounds: tuple[int, int]) -> list[Block]:
                connection = idle.get()
                try:
                    within = f"{query} WHERE rowid BETWEEN {bounds[0]} AND {bounds[1]}"
                    return list(_blocks(connection, within, defaults, 1 / len(ranges)))
                finally:
                    idle.put(connection)

            pool = stack.enter_context(ThreadPoolExecutor(_THREADS))
            stack.callback(pool.shutdown, cancel_futures=True)
            yield from _in_turn(pool, read, ranges)
    except (adbc_driver_manager.Error, RuntimeError) as error:  # nanoarrow's own error is a RuntimeError
        raise UntypedError from error


def _in_turn(
    pool: ThreadPoolExecutor, read: Callable[[tuple[int, int]], list[Block]], ranges: Sequence[tuple[int, int]]
) -> Iterator[Block]:
    """Yield the blocks of each range in order, reading no more than a few ranges ahead."""
    waiting = deque(pool.submit(read, bounds) for bounds in ranges[: _THREADS * _WAITING])
    for bounds in [*ranges[_THREADS * _WAITING :], *([None] * len(waiting))]:
        yield from waiting.popleft().result()
        if bounds is not None:
            waiting.append(pool.submit(read, bounds))


def _ranges(database: Database, table: str) -> list[tuple[int, int]]:
    """Return first and last row number of about equal parts of a table; none where it is to be read in one go.

    That is a table without row numbers, and one with so few rows among them that most parts would be empty.
    """
    # one query for both would look at every row
    query = f'SELECT (SELECT MIN(rowid) FROM "{table}"), (SELECT MAX(rowid) FROM "{table}")'  # noqa: S608
    try:
        [(first, last)] = database.connection.execute(query)
    except sqlite3.Error:
        return []
    if first is None or last - first > database.size:  # a row takes more than a byte
        return []
    return [(at, min(at + BATCH_ROWS - 1, last)) for at in range(first, last + 1, BATCH_ROWS)]


def _connect(database: Database, stack: ExitStack) -> Any:
    """Return a connection of its own to the export, open until the stack is left."""
    import adbc_driver_manager
    import adbc_driver_sqlite

    opened = stack.enter_context(adbc_driver_sqlite.connect(database.uri))
    return stack.enter_context(adbc_driver_manager.AdbcConnection(opened))


def _blocks(connection: Any, query: str, names: Mapping[str, int], share: float) -> Iterator[Block]:
    """Yield the rows of a query in batches; each is about ``share`` of the table."""
    import adbc_driver_manager
    import nanoarrow

    with adbc_driver_manager.AdbcStatement(connection) as statement:
        statement.set_options(**{"adbc.sqlite.query.batch_rows": str(BATCH_ROWS)})
        statement.set_sql_query(query)
        handle, _ = statement.execute_query()
        with nanoarrow.ArrayStream(handle) as stream:
            if any(field.type != nanoarrow.Type.INT64 for field in stream.schema.fields):
                raise UntypedError
            for batch in stream.iter_chunks():
                columns = [np.asarray(column.buffer(1))[: len(batch)] for column in batch.iter_children()]
                yield Block(len(batch), dict(zip(names, columns, strict=False)), share)
