"""Keeps a part of a trace: one process, one device, a window of time, or some of its forwards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.events import pair_waits
from traceview.analysis.links import best_copy_row
from traceview.errors import SelectionError, UsageError
from traceview.model import KeptForwards

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.forwards import Forward
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
    low, high = window_bounds(trace.start_ns, window_ms)
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


def window_bounds(start_ns: int, window_ms: tuple[float, float]) -> tuple[int, int]:
    """Return a window's ends in ns on the trace's timeline; raises ``UsageError`` for a reversed window."""
    if not window_ms[1] > window_ms[0]:
        raise UsageError(f"the window {window_ms[0]:g}:{window_ms[1]:g} ends before it begins", "use --window FROM:TO")
    low, high = (start_ns + round(min(max(moment * _NS_PER_MS, -_FOREVER), _FOREVER)) for moment in window_ms)
    return low, high


def select_forwards(trace: Trace, kept: Sequence[Forward], others: Sequence[Forward]) -> Trace:
    """Return what the report of some forwards depends on: all work and calls in their time, and what these wait for.

    The fastest large copy of each device stays too, whenever it was: what loads cost is judged by it. Ranges of the
    ``others`` are left out, so that the others are no forwards of the result. The kept ones keep their indices and stay
    warm-up or not. Raises ``SelectionError`` where there is none to keep.
    """
    if not kept:
        raise SelectionError(
            "there is no forward to keep here",
            "leave out --forwards, and keep a part of the time with --window FROM:TO",
        )
    low, high = span_of(trace, kept)
    operations = (trace.operations.start <= high) & (trace.operations.end >= low)
    best = [row for device in trace.capture.devices if (row := best_copy_row(trace, device)) is not None]
    operations[best] = True
    calls = (trace.calls.start <= high) & (trace.calls.end >= low)
    launches = trace.operations.launch[operations]
    calls[launches[launches >= 0]] = True
    pairs = pair_waits(trace)
    waited = pairs[(pairs >= 0) & calls[trace.event_waits.call]]
    calls[trace.event_records.call[waited]] = True
    part = _keep(
        trace,
        operations=operations,
        calls=calls,
        ranges=(trace.ranges.start <= high) & (trace.ranges.end >= low) & ~_ranges_of(trace, others),
        migrations=(trace.migrations.start <= high) & (trace.migrations.end >= low),
        streams=np.ones(len(trace.streams), dtype=bool),
    )
    warmup = tuple(dict.fromkeys(forward.index for forward in kept if forward.warmup))
    return replace(part, capture=replace(part.capture, kept=KeptForwards(kept[0].index, warmup)))


def span_of(trace: Trace, forwards: Sequence[Forward]) -> tuple[int, int]:
    """Return the first and last moment of some forwards' ranges, operations and launches."""
    rows = np.concatenate([forward.operations for forward in forwards])
    launches = trace.operations.launch[rows]
    launches = launches[launches >= 0]
    low, high = min(forward.start for forward in forwards), max(forward.end for forward in forwards)
    for table, some in ((trace.operations, rows), (trace.calls, launches)):
        if len(some):
            low, high = min(low, int(table.start[some].min())), max(high, int(table.end[some].max()))
    return low, high


def _ranges_of(trace: Trace, forwards: Sequence[Forward]) -> Flags:
    """Return which ranges belong to some forwards: opened inside one on its thread, or naming its operations."""
    inside = np.zeros(len(trace.ranges), dtype=bool)
    for forward in forwards:
        inside[forward.ranges[forward.ranges >= 0]] = True
        first, last = np.searchsorted(trace.ranges.start, (forward.start, forward.end))
        inside[first:last] |= trace.ranges.thread[first:last] == forward.thread
    return inside


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
