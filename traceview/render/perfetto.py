"""A trace for the Perfetto UI: threads, streams, NVTX ranges, holes by cause, and arrows from cause to effect.

Written with the protobuf classes of the ``perfetto`` package. Slices of one track must nest; what overlaps otherwise
goes to a second track of the same name.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.analysis.events import pair_waits
from traceview.errors import UsageError
from traceview.render.perfetto_tracks import Flows, Slices, TrackWriter
from traceview.render.shown import shown
from traceview.render.verdict import PHRASES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traceview.model import Ints, Trace

    Tables = Mapping[str, Mapping[str, Any]]

NAME_SHOWN = 300


def as_perfetto(trace: Trace, tables: Tables, step: Callable[[str], None] = lambda _: None) -> bytes:
    """Return a Perfetto trace (protobuf) of everything in a trace, times in ns.

    ``tables`` are those of ``export_tables``. Times before 0 move the whole trace so that it begins at 0. Raises
    ``UsageError`` where the ``perfetto`` package is not installed.
    """
    try:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder
    except ImportError:
        raise UsageError("this export needs the perfetto package", "pip install 'traceview[perfetto]'") from None
    sink = io.BytesIO()
    writer = TrackWriter(StreamingTraceProtoBuilder(sink), shift_ns=max(0, -trace.start_ns))
    step("host threads")
    _threads(writer, trace, tables)
    step("streams")
    _streams(writer, trace, tables)
    step("holes")
    _forwards(writer, trace, tables)
    return sink.getvalue()


def _threads(writer: TrackWriter, trace: Trace, tables: Tables) -> None:
    flows = Flows(len(trace.calls))
    launch = trace.operations.launch
    launched = np.flatnonzero(launch >= 0)
    flows.leave(launch[launched], launched)
    leaves, reaches = _event_flows(trace)
    flows.leave(leaves, len(trace.operations) + np.arange(len(leaves)))
    flows.reach(reaches, len(trace.operations) + np.arange(len(reaches)))
    ranges = tables["ranges"]
    for index, thread in enumerate(trace.threads):
        calls = np.flatnonzero(trace.calls.thread == index)
        own = np.flatnonzero(trace.ranges.thread == index)
        if not len(calls) and not len(own):
            continue
        parent = writer.thread(thread.process, thread.number)
        names = [shown(ranges["name"][row], NAME_SHOWN) for row in own.tolist()]
        about = [{"domain": domain} if (domain := ranges["domain"][row]) else {} for row in own.tolist()]
        times = trace.ranges.start[own], trace.ranges.end[own]
        writer.slices(parent, "NVTX ranges", Slices(*times, names, "nvtx", about))
        kinds = [{"kind": tables["calls"]["kind"][row]} for row in calls.tolist()]
        names = [tables["calls"]["name"][row] or "unknown" for row in calls.tolist()]
        times = trace.calls.start[calls], trace.calls.end[calls]
        writer.slices(parent, "API calls", Slices(*times, names, "api", kinds, *flows.of(calls)))


def _event_flows(trace: Trace) -> tuple[Ints, Ints]:
    """Return, for each wait whose record is known, the call that recorded and the call that waits."""
    pairs = pair_waits(trace)
    waits = np.flatnonzero(pairs >= 0)
    recorded, waited = trace.event_records.call[pairs[waits]], trace.event_waits.call[waits]
    known = (recorded >= 0) & (waited >= 0)
    return recorded[known], waited[known]


def _streams(writer: TrackWriter, trace: Trace, tables: Tables) -> None:
    flows = Flows(len(trace.operations))
    launched = np.flatnonzero(trace.operations.launch >= 0)
    flows.reach(launched, launched)
    operations = tables["operations"]
    for index, stream in enumerate(trace.streams):
        own = np.flatnonzero(trace.operations.stream == index)
        if not len(own):
            continue
        name = trace.capture.devices.get(stream.device)
        parent = writer.device(stream.process, stream.device, shown(name, 60) if name else "")
        names = [_operation_name(operations, row) for row in own.tolist()]
        about = [_operation_about(operations, row) for row in own.tolist()]
        table = trace.operations.take(own)
        slices = Slices(table.start, table.end, names, "gpu", about, *flows.of(own))
        writer.slices(parent, f"stream {stream.number} (context {stream.context})", slices)


def _operation_name(operations: Mapping[str, Any], row: int) -> str:
    name = operations["name"][row]
    if name is not None:
        return shown(name, NAME_SHOWN)
    words = (operations["direction"][row], operations["memory"][row], operations["kind"][row])
    return " ".join(word for word in words if word and word != "device")


def _operation_about(operations: Mapping[str, Any], row: int) -> dict[str, Any]:
    about: dict[str, Any] = {}
    for key in ("kind", "role"):
        if operations[key][row]:
            about[key] = operations[key][row]
    for key in ("layer", "forward"):
        if operations[key][row] >= 0:
            about[key] = int(operations[key][row])
    if operations["bytes"][row]:
        about["bytes"] = int(operations["bytes"][row])
        took = int(operations["end_ns"][row] - operations["start_ns"][row])
        about["GB/s"] = float(operations["bytes"][row] / took) if took else 0.0
    return about


def _forwards(writer: TrackWriter, trace: Trace, tables: Tables) -> None:
    forwards, holes = tables["forwards"], tables["holes"]
    keys = list(zip(forwards["process"], forwards["device"], strict=True))
    for process, device in dict.fromkeys(keys):
        parent = writer.device(process, device, "")
        rows = [row for row, key in enumerate(keys) if key == (process, device)]
        start, end = (np.array([forwards[name][row] for row in rows]) for name in ("t0_ns", "t1_ns"))
        names = [shown(forwards["name"][row], NAME_SHOWN) for row in rows]
        about = [
            {key: forwards[key][row] for key in ("index", "makespan_ns", "ideal_ns") if forwards[key][row] is not None}
            for row in rows
        ]
        writer.slices(parent, "forwards", Slices(start, end, names, "forward", about))
        indices = {forwards["index"][row] for row in rows}
        own = [
            row
            for row, (index, on) in enumerate(zip(holes["forward"], holes["device"], strict=True))
            if on == device and index in indices
        ]
        start, end = (np.array([holes[name][row] for row in own], dtype=np.int64) for name in ("start_ns", "end_ns"))
        about = [_hole_about(holes, row) for row in own]
        writer.slices(parent, "holes", Slices(start, end, [holes["category"][row] for row in own], "hole", about))


def _hole_about(holes: Mapping[str, Any], row: int) -> dict[str, Any]:
    about: dict[str, Any] = {"why": PHRASES[holes["category"][row]]}
    if holes["waits_for"][row]:
        about["waits for"] = shown(holes["waits_for"][row], NAME_SHOWN)
    if holes["layer"][row] >= 0:
        about["before layer"] = int(holes["layer"][row])
    return about
