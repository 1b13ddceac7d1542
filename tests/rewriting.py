"""The same capture written in another way: shifted, renumbered, shuffled, with a stranger beside it.

Every change takes an open copy of an export and the generator of its random numbers.
"""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Change = Callable[[sqlite3.Connection, random.Random], None]

INVALID = 4294967295
"""Stream or event that means "none"."""

SHIFT_NS = 7_200_000_000_123
TIMES = ("start", "end", "timestamp", "rawTimestamp")
STREAMS = ("streamId", "nullStreamId")
CONTEXTS = ("contextId", "srcContextId", "dstContextId", "parentContextId")
STRINGS = ("demangledName", "shortName", "mangledName", "nameId", "textId", "jsonTextId", "symbol", "module")
EVENTS = ("eventId", "eventSyncId")
IDENTITIES = ("globalPid", "globalTid", "endGlobalTid")
_UNTIMED = {"TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS"}
_PRIME = (1 << 31) - 1


def rewrite(source: Path, target: Path, *changes: Change, seed: int = 0) -> Path:
    """Write a changed copy of an export and return its path."""
    shutil.copyfile(source, target)
    with closing(sqlite3.connect(target.resolve().as_uri(), uri=True, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("BEGIN")
        for change in changes:
            change(connection, random.Random(seed))
        connection.execute("COMMIT")
    return target


def tables(connection: sqlite3.Connection) -> dict[str, list[str]]:
    """Return the columns of each table."""
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    return {name: [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')] for name in names}


def change_numbers(connection: sqlite3.Connection, columns: tuple[str, ...], number: Callable[[int], int]) -> None:
    """Replace each integer of some columns, in every table that has them."""
    connection.create_function("changed", 1, number, deterministic=True)
    for table, present in tables(connection).items():
        own = [name for name in present if name in columns and not (table in _UNTIMED and name in TIMES)]
        for name in own:
            connection.execute(f'UPDATE "{table}" SET "{name}" = changed("{name}") WHERE "{name}" IS NOT NULL')


def renumbered_stream(number: int) -> int:
    """Return another number for a stream; those that came first come last."""
    return number if number == INVALID else 1_000_000 - number


def renumbered_process(number: int) -> int:
    """Return another number for a process; those that came first come last."""
    return 0xFFFFFF - number


def shift_times(connection: sqlite3.Connection, _: random.Random) -> None:
    """Let everything happen later."""
    change_numbers(connection, TIMES, lambda at: at + SHIFT_NS)


def renumber_streams(connection: sqlite3.Connection, _: random.Random) -> None:
    """Give every stream another number, in the opposite order."""
    change_numbers(connection, STREAMS, renumbered_stream)


def renumber_contexts(connection: sqlite3.Connection, _: random.Random) -> None:
    """Give every context another number, in the opposite order; 0 is no context."""
    change_numbers(connection, CONTEXTS, lambda number: 1000 - number if number else 0)


def renumber_processes(connection: sqlite3.Connection, _: random.Random) -> None:
    """Give every process another number, in the opposite order."""
    change_numbers(connection, IDENTITIES, lambda identity: _with_process(identity, renumbered_process))
    change_numbers(connection, ("pid", "processId"), renumbered_process)


def _with_process(identity: int | None, renumber: Callable[[int], int]) -> int | None:
    """Return a process's or thread's serialised id (process in bits 24 to 47) with another process in it."""
    if identity is None:
        return None
    process = identity >> 24 & 0xFFFFFF
    return identity + (renumber(process) - process << 24)


def renumber_threads(connection: sqlite3.Connection, _: random.Random) -> None:
    """Give every thread another number, in the opposite order."""
    change_numbers(connection, ("globalTid", "endGlobalTid"), lambda identity: identity ^ 0xFFFFFF)


def renumber_correlations(connection: sqlite3.Connection, random: random.Random) -> None:
    """Give every call another correlation id, in no order; 0 is none."""
    factor = random.randrange(1 << 20, 1 << 30)
    change_numbers(connection, ("correlationId",), lambda number: number * factor % _PRIME if number > 0 else number)


def renumber_events(connection: sqlite3.Connection, random: random.Random) -> None:
    """Give every event another id, in no order."""
    factor = random.randrange(1 << 20, 1 << 30)
    change_numbers(connection, EVENTS, lambda number: number if number == INVALID else number * factor % _PRIME)


def renumber_strings(connection: sqlite3.Connection, random: random.Random) -> None:
    """Store every text under another id, in no order, also where a Python stack names it."""
    old = [number for (number,) in connection.execute("SELECT id FROM StringIds")]
    new = dict(zip(old, random.sample(range(1 << 20, 1 << 21), len(old)), strict=True))
    change_numbers(connection, STRINGS, lambda number: new.get(number, number))
    connection.create_function("changed", 1, lambda number: new[number], deterministic=True)
    connection.execute("UPDATE StringIds SET id = changed(id)")
    connection.create_function("renamed", 1, lambda text: _renamed(text, new), deterministic=True)
    for table, column in (("NVTX_EVENTS", "jsonText"), ("StringIds", "value")):
        if column in tables(connection).get(table, []):
            connection.execute(f"UPDATE {table} SET {column} = renamed({column}) WHERE {column} LIKE '%\"Frames\"%'")


def _renamed(text: str, new: dict[int, int]) -> str:
    payload = json.loads(text)
    for stack in payload.values():
        for frame in stack["Frames"]:
            frame |= {name: new[frame[name]] for name in ("Function", "File")}
    return json.dumps(payload)


def shuffle_rows(connection: sqlite3.Connection, random: random.Random) -> None:
    """Put the rows of every table into another order."""
    for table, columns in tables(connection).items():
        rows = connection.execute(f'SELECT * FROM "{table}"').fetchall()
        random.shuffle(rows)
        connection.execute(f'DELETE FROM "{table}"')
        insert(connection, table, columns, rows)


def insert(connection: sqlite3.Connection, table: str, columns: list[str], rows: list[Any]) -> None:
    """Add rows to a table."""
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
    connection.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', rows)


def reorder_tables(connection: sqlite3.Connection, random: random.Random) -> None:
    """Create the tables in another order, each with its columns in another order."""
    present = list(tables(connection))
    random.shuffle(present)
    for table in present:
        columns = connection.execute(f'SELECT name, type, "notnull", pk FROM pragma_table_info({table!r})').fetchall()
        names = ", ".join(f'"{name}"' for name, *_ in columns)
        random.shuffle(columns)
        single = sum(key > 0 for *_, key in columns) == 1
        definitions = [
            f'"{name}" {kind}{" PRIMARY KEY" if single and key else ""}{" NOT NULL" if required else ""}'
            for name, kind, required, key in columns
        ]
        connection.execute(f'ALTER TABLE "{table}" RENAME TO "old"')
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(definitions)})')
        connection.execute(f'INSERT INTO "{table}" ({names}) SELECT {names} FROM "old" ORDER BY rowid')
        connection.execute('DROP TABLE "old"')


STRANGER = 77
STRANGER_DEVICE = 5
_WORK = tuple(f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET", "RUNTIME", "SYNCHRONIZATION"))


def add_stranger(connection: sqlite3.Connection, _: random.Random) -> None:
    """Let a second process do on a GPU of its own what the first does, a little later, and name none of it.

    It uses the numbers of the first for everything that is a process's own: streams, contexts, correlation ids.
    """
    present = tables(connection)
    connection.create_function("of_stranger", 1, lambda identity: _with_process(identity, lambda _: STRANGER))
    values = {name: f'of_stranger("{name}")' for name in IDENTITIES} | {name: f'"{name}" + 4321' for name in TIMES}
    values["deviceId"] = str(STRANGER_DEVICE)
    [(last,)] = connection.execute(f'SELECT MAX("end") - 4321 FROM {_WORK[3]}')
    for table in _WORK:
        if table in present:
            columns = present[table]
            taken = ", ".join(values.get(name, f'"{name}"') for name in columns)
            rows = connection.execute(f'SELECT {taken} FROM "{table}" WHERE "end" < ?', (last,)).fetchall()
            insert(connection, table, columns, rows)


def forget_slimming(connection: sqlite3.Connection, _: random.Random) -> None:
    """Take away what a slimmed capture says of its forwards by their numbers, which change when others come before."""
    if "META_DATA_CAPTURE" in tables(connection):
        connection.execute("DELETE FROM META_DATA_CAPTURE WHERE name LIKE 'TRACEVIEW_SLIM:%'")


def appended(other: Path, *, process: int, later_ns: int) -> Change:
    """Return the change that adds all of another capture's rows, as those of ``process`` and ``later_ns`` later."""

    def append(connection: sqlite3.Connection, _: random.Random) -> None:
        present = tables(connection)
        connection.create_function("of_other", 1, lambda identity: _with_process(identity, lambda _: process))
        [(texts,)] = connection.execute("SELECT MAX(id) FROM StringIds")
        values = {name: f'of_other("{name}")' for name in IDENTITIES} | {
            name: f'"{name}" + {later_ns}' for name in TIMES
        }
        values |= {name: f'"{name}" + {texts}' for name in STRINGS} | {"pid": str(process), "processId": str(process)}
        connection.execute("COMMIT")
        connection.execute("ATTACH ? AS other", (f"{other.resolve().as_uri()}?mode=ro&immutable=1",))
        connection.execute("BEGIN")
        for (table,) in connection.execute("SELECT name FROM other.sqlite_master WHERE type = 'table'").fetchall():
            if not table.startswith(("ENUM_", "META_DATA_", "TARGET_INFO_SESSION")):
                own = values | ({"id": f'"id" + {texts}'} if table == "StringIds" else {})
                columns = [row[1] for row in connection.execute(f'PRAGMA other.table_info("{table}")')]
                taken = ", ".join(own.get(name, f'"{name}"') for name in columns)
                rows = connection.execute(f'SELECT {taken} FROM other."{table}"').fetchall()
                if table not in present:
                    [(sql,)] = connection.execute("SELECT sql FROM other.sqlite_master WHERE name = ?", (table,))
                    connection.execute(sql)
                insert(connection, table, columns, rows)

    return append
