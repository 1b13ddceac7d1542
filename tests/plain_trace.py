"""Traces as plain rows of plain values, so that tests can compare them and show what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import traceview
from traceview.model import CallKind, Direction, Kind, Memory

if TYPE_CHECKING:
    from pathlib import Path

    from export_writer import ExportWriter

    from traceview.model import Calls, Columns, Trace

    Row = dict[str, Any]


def read_back(builder: ExportWriter, folder: Path) -> Trace:
    """Write an export into a folder and read it."""
    return traceview.read(builder.write(folder / "trace.sqlite"))


def rows(table: Columns) -> list[Row]:
    """Return a container's rows as dicts of ints."""
    columns = {name: values.tolist() for name, values in vars(table).items()}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def name_of(trace: Trace, index: int) -> str | None:
    """Return the name at an index, None for none."""
    return None if index < 0 else trace.names[index]


def call_of(trace: Trace, index: int) -> tuple[str | None, int] | None:
    """Return the name and the start of a call, None for none."""
    calls: Calls = trace.calls
    return None if index < 0 else (name_of(trace, int(calls.name[index])), int(calls.start[index]))


def operations(trace: Trace) -> list[Row]:
    """Return the operations with everything that an index stands for written out."""
    found = []
    for row in rows(trace.operations):
        stream = trace.streams[row["stream"]]
        found.append(
            row
            | {
                "kind": Kind(row["kind"]).name,
                "stream": (stream.process, stream.device, stream.context, stream.green_context, stream.number),
                "launch": call_of(trace, row["launch"]),
                "name": name_of(trace, row["name"]),
                "direction": Direction(row["direction"]).name,
                "memory": Memory(row["memory"]).name,
            }
        )
    return found


def calls(trace: Trace) -> list[Row]:
    """Return the API calls with names, threads and kinds written out."""
    return [
        row
        | {
            "thread": (trace.threads[row["thread"]].process, trace.threads[row["thread"]].number),
            "name": name_of(trace, row["name"]),
            "kind": CallKind(row["kind"]).name,
            "stack": None if row["stack"] < 0 else tuple(frame.symbol for frame in trace.stacks[row["stack"]].native),
        }
        for row in rows(trace.calls)
    ]


def ranges(trace: Trace) -> list[Row]:
    """Return the NVTX ranges with names, domains and threads written out."""
    return [
        row
        | {
            "thread": (trace.threads[row["thread"]].process, trace.threads[row["thread"]].number),
            "name": name_of(trace, row["name"]),
            "domain": name_of(trace, row["domain"]),
        }
        for row in rows(trace.ranges)
    ]


def records(trace: Trace, which: str) -> list[Row]:
    """Return event records, event waits or stream synchronisations with streams and calls written out."""
    return [
        row | {"call": call_of(trace, row["call"]), "stream": trace.streams[row["stream"]].number}
        for row in rows(getattr(trace, which))
    ]


def everything(trace: Trace) -> dict[str, list[Row]]:
    """Return all events of a trace as plain rows."""
    return {
        "operations": operations(trace),
        "calls": calls(trace),
        "ranges": ranges(trace),
        "event_records": records(trace, "event_records"),
        "event_waits": records(trace, "event_waits"),
        "stream_syncs": records(trace, "stream_syncs"),
        "migrations": rows(trace.migrations),
    }
