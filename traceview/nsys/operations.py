"""Reads kernels, copies, memsets and graph launches into one table of operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview.model import Direction, Kind, Memory, Migrations, Operations
from traceview.nsys import schema
from traceview.nsys.columns import read_columns
from traceview.nsys.names import distinct, process_of, run_starts, small, spread, translated
from traceview.nsys.order import time_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.model import Flags, Ints
    from traceview.nsys.calls import ApiRows
    from traceview.nsys.database import Database
    from traceview.nsys.names import NameTable

    Table = dict[str, Ints]

SOURCES = {
    Kind.KERNEL: schema.KERNELS,
    Kind.COPY: schema.COPIES,
    Kind.MEMSET: schema.MEMSETS,
    Kind.GRAPH: schema.GRAPHS,
}
_MOST_PIECES = 1 << 31
_COLUMNS = ("start", "end", "name", "shape", "n_bytes", "pieces", "direction", "memory", "source", "target")
_TIES = ("end", "kind", "launch", "stream", "name", *_COLUMNS[3:])
"""What orders operations that start together: first what renumbering streams and texts cannot change."""

_DEFAULTS = {"name": -1, "direction": Direction.OTHER, "memory": Memory.UNKNOWN, "source": -1, "target": -1}


def read_operation_tables(
    database: Database, keep: Callable[[Table], Flags] | None = None
) -> tuple[dict[Kind, Table], Table]:
    """Return the rows of each kind of operation, and those of unified-memory migrations, or what ``keep`` keeps."""
    tables = {kind: read_columns(database, source, keep) for kind, source in SOURCES.items()}
    words = _copy_words(database)
    memories = _memories(database)
    copies = tables[Kind.COPY]
    copies["direction"] = _look_up(copies["copy_kind"], {n: schema.DIRECTIONS.get(w, -1) for n, w in words.items()})
    copies["memory"] = _host_side(
        copies["direction"], _look_up(copies["source_kind"], memories), _look_up(copies["target_kind"], memories)
    )
    copies["pieces"] = np.clip(copies["pieces"], 1, _MOST_PIECES)
    for side in ("source", "target"):
        # narrow as they are: -1 fits any type
        copies[side] = np.maximum(copies[side], np.array(-1, dtype=copies[side].dtype))
    migrates = np.isin(copies["copy_kind"], migration_kinds(database))
    migrations = {name: values[migrates] for name, values in copies.items()}
    migrations["cause"] = np.maximum(_look_up(migrations["cause"], _causes(database)), 0)
    if migrates.any():
        tables[Kind.COPY] = {name: values[~migrates] for name, values in copies.items()}
    return tables, migrations


def migration_kinds(database: Database) -> list[int]:
    """Return the numbers of the copy kinds that are unified-memory migrations."""
    return [number for number, word in _copy_words(database).items() if word in schema.MIGRATION_KINDS]


def make_operations(
    database: Database, tables: dict[Kind, Table], streams: Sequence[Ints], api: ApiRows, names: NameTable
) -> Operations:
    """Return all operations in start order; ``streams`` holds each table's dense stream indices."""
    _name_kernels(database, tables[Kind.KERNEL], names)
    graphs = tables[Kind.GRAPH]
    if len(graphs["start"]):
        graphs["name"] = np.full(len(graphs["start"]), names.add("CUDA graph"), dtype=np.int64)
    lengths = [len(table["start"]) for table in tables.values()]
    columns: Table = {
        "kind": np.repeat(small(list(tables)), lengths),
        "stream": np.concatenate(streams),
        "launch": np.concatenate([_launches(api, table) for table in tables.values()]),
    }
    for name in _COLUMNS:
        # a table's column is dropped as soon as it is joined: a large trace's tables would stand in memory twice
        parts = [
            table.pop(name, np.broadcast_to(small(_DEFAULTS.get(name, 0)), rows))
            for rows, table in zip(lengths, tables.values(), strict=True)
        ]
        # the columns of a table without rows would widen those of the others
        columns[name] = np.concatenate([part for part in parts if len(part)] or parts)
    np.maximum(columns["end"], columns["start"], out=columns["end"])
    order = time_order(columns["start"], lambda rows: [columns[name][rows] for name in _TIES])
    if order is not None:
        for name, values in columns.items():
            columns[name] = values[order]
    return Operations(**columns)


def _launches(api: ApiRows, table: Table) -> Ints:
    """Return the row of the call that launched each operation, or -1."""
    starts = run_starts(table["pid"])
    process = spread(process_of(table["pid"][starts]), starts, len(table["pid"]))
    return api.find(process, table["correlation"])


def make_migrations(table: Table) -> Migrations:
    """Return unified-memory rows in start order."""
    migrations = Migrations(
        start=table["start"],
        end=np.maximum(table["end"], table["start"]),
        process=process_of(table["pid"]),
        device=table["device"],
        n_bytes=table["n_bytes"],
        direction=table["direction"],
        cause=table["cause"],
    )
    return migrations.take(np.lexsort(tuple(reversed(vars(migrations).values()))))


def _name_kernels(database: Database, kernels: Table, names: NameTable) -> None:
    known = distinct(kernels["name"])
    kernels["name"] = names.add_all(kernels["name"], database.strings(known[known >= 0]))


def _enumeration(database: Database, table: str, documented: tuple[str, ...]) -> dict[int, str]:
    """Return the words of an enumeration: the file's own where it has them, else the documented order."""
    if {"id", "name"} <= database.tables.get(table, frozenset()):
        rows = database.rows(f'SELECT id, name FROM "{table}"')  # noqa: S608
        own = {number: _word(str(name)) for number, name in rows if isinstance(number, int)}
        if own:
            return own
    return dict(enumerate(documented))


def _word(name: str) -> str:
    """Return what follows the last ``KIND_`` or ``CAUSE_`` in the name of an enumeration's member."""
    return name.rpartition("KIND_")[2].rpartition("CAUSE_")[2]


def _copy_words(database: Database) -> dict[int, str]:
    return _enumeration(database, schema.COPY_KINDS_TABLE, (*schema.COPY_KINDS, *schema.MIGRATION_KINDS))


def _memories(database: Database) -> dict[int, int]:
    words = _enumeration(database, schema.MEMORY_KINDS_TABLE, schema.MEMORY_KINDS)
    return {number: schema.MEMORIES.get(word, Memory.UNKNOWN) for number, word in words.items()}


def _causes(database: Database) -> dict[int, int]:
    words = _enumeration(database, schema.MIGRATION_CAUSES_TABLE, schema.MIGRATION_CAUSES)
    known = {word: number for number, word in enumerate(schema.MIGRATION_CAUSES)}
    return {number: known.get(word, 0) for number, word in words.items()}


def _look_up(values: Ints, meaning: dict[int, int]) -> Ints:
    """Return the meaning of each value, -1 for those that have none."""
    known = distinct(values)
    return translated(values, known, small([meaning.get(number, -1) for number in known.tolist()]))


def _host_side(direction: Ints, source: Ints, target: Ints) -> Ints:
    """Return the memory kind of a copy's host side; of a copy between hosts the pageable one, else ``DEVICE``."""
    host = np.full(len(direction), int(Memory.UNKNOWN), dtype="int8")
    for way, side in ((Direction.H2D, source), (Direction.D2H, target), (Direction.H2H, target)):
        np.copyto(host, side, where=direction == int(way))
    np.copyto(host, source, where=(direction == int(Direction.H2H)) & (source == int(Memory.PAGEABLE)))
    for way in (Direction.D2D, Direction.P2P):
        host[direction == int(way)] = int(Memory.DEVICE)
    return host
