"""Keeps a part of a trace: one process, one device, or a window of time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceview.errors import SelectionError, UsageError

if TYPE_CHECKING:
    from traceview.model import Flags, Records, Trace

_NS_PER_MS = 1_000_000
_FOREVER = 1 << 62
"""ns; an open end of a window, small enough that no sum with a time overflows"""


def select_process(trace: Trace, process: int) -> Trace:
    """Return the part of the trace that belongs to one process id; raises ``SelectionError`` where there is none."""
    if process not in trace.capture.processes:
        there = ", ".join(str(number) for number in trace.capture.processes)
        raise SelectionError(f"no process {process} in this trace", f"there is: {there}")
    threads = np.array([thread.process == process for thread in trace.threads], dtype=bool)
    streams = trace.stream_processes() == process
    kept = _keep(
        trace,
        operations=streams[trace.operations.stream],
        calls=threads[trace.calls.thread],
        ranges=threads[trace.ranges.thread],
        migrations=trace.migrations.process == process,
        streams=streams,
    )
    used = {stream.device for stream in trace.streams if stream.process == process}
    devices = {number: name for number, name in trace.capture.devices.items() if number in used}
    return replace(kept, capture=replace(trace.capture, processes=(process,), devices=devices))


def select_device(trace: Trace, device: int) -> Trace:
    """Return the trace with the work of one device only; raises ``SelectionError`` where there is no such device."""
    if device not in trace.capture.devices:
        there = ", ".join(str(number) for number in trace.capture.devices)
        raise SelectionError(f"no device {device} in this trace", f"there is: {there}")
    streams = trace.stream_devices() == device
    operations = trace.operations
    peer = (operations.source == device) | (operations.target == device)
    kept = _keep(
        trace,
        operations=streams[operations.stream] | peer,
        calls=np.ones(len(trace.calls), dtype=bool),
        ranges=np.ones(len(trace.ranges), dtype=bool),
        migrations=trace.migrations.device == device,
        streams=np.ones(len(trace.streams), dtype=bool),
    )
    return replace(kept, capture=replace(trace.capture, devices={device: trace.capture.devices[device]}))


def select_window(trace: Trace, window_ms: tuple[float, float]) -> Trace:
    """Return what overlaps a window in ms from the trace's first event; nothing is cut at the edges.

    An end may be infinite. A call is also kept when an operation inside the window was launched by it, whenever that
    was.
    Raises ``UsageError`` for a reversed window and ``SelectionError`` for an empty one.
    """
    if not window_ms[1] > window_ms[0]:
        raise UsageError(f"the window {window_ms[0]:g}:{window_ms[1]:g} ends before it begins", "use --window FROM:TO")
    low, high = (trace.start_ns + round(min(max(moment * _NS_PER_MS, -_FOREVER), _FOREVER)) for moment in window_ms)
    operations = (trace.operations.start < high) & (trace.operations.end > low)
    calls = (trace.calls.start < high) & (trace.calls.end > low)
    launches = trace.operations.launch[operations]
    calls[launches[launches >= 0]] = True
    if not operations.any() and not calls.any():
        last = (trace.end_ns - trace.start_ns) / _NS_PER_MS
        raise SelectionError("nothing lies in this window", f"the trace spans 0:{last:.3f} ms")
    return _keep(
        trace,
        operations=operations,
        calls=calls,
        ranges=(trace.ranges.start < high) & (trace.ranges.end > low),
        migrations=(trace.migrations.start < high) & (trace.migrations.end > low),
        streams=np.ones(len(trace.streams), dtype=bool),
    )


def _keep(trace: Trace, *, operations: Flags, calls: Flags, ranges: Flags, migrations: Flags, streams: Flags) -> Trace:
    """Return the trace with the marked rows; what points to a dropped call points to none."""
    moved = np.where(calls, np.cumsum(calls) - 1, -1)

    def follow(index: np.ndarray) -> np.ndarray:
        return np.where(index >= 0, moved[np.maximum(index, 0)], -1) if len(moved) else index

    def records(table: Records) -> Records:
        known = table.call >= 0
        kept = streams[table.stream] & (~known | (follow(table.call) >= 0)) if len(table) else known
        part = table.take(kept)
        return replace(part, call=follow(part.call))

    part = trace.operations.take(operations)
    return replace(
        trace,
        operations=replace(part, launch=follow(part.launch)),
        calls=trace.calls.take(calls),
        ranges=trace.ranges.take(ranges),
        event_records=records(trace.event_records),
        event_waits=records(trace.event_waits),
        stream_syncs=records(trace.stream_syncs),
        migrations=trace.migrations.take(migrations),
    )
