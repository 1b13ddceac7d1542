"""Finds layers from what streams wait for, where nobody named them.

When a compute stream waits for an event that a load stream recorded, what the load stream ran up to that record is the
load of a layer, and what the compute stream runs until its next such wait is that layer's compute.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.events import pair_waits
from traceview.model import Direction, Kind

if TYPE_CHECKING:
    from traceview.model import Flags, Ints, Trace


@dataclass(frozen=True)
class EventLayers:
    """Layers in the order of their waits: arrays with one element per layer, and two with one per operation."""

    wait: Ints
    """row of ``Trace.calls``: the first wait of the layer"""
    stream: Ints
    """index into ``Trace.streams``: the stream that waits and computes"""
    begin: Ints
    """row of ``Trace.calls``: the load stream's wait for the compute stream that opened its group of loads, or -1"""
    op_load: Ints
    """for each operation the layer that it loads, or -1"""
    op_compute: Ints
    """for each operation the layer that it computes, or -1; the last layer of a pass is not cut off yet"""

    def __len__(self) -> int:
        return len(self.wait)


def find_event_layers(trace: Trace, carries_loads: Flags, mover: Flags) -> EventLayers:
    """Return the layers that waits for load streams tell of.

    ``carries_loads`` says which streams carry loads, ``mover`` which operations are mover kernels. Waits between which
    their stream computes nothing are one layer: engines wait once for keys and once for values.
    """
    waits, records = trace.event_waits, trace.event_records
    loading = _load_streams(trace, carries_loads, mover)
    pairs = np.where(waits.call >= 0, pair_waits(trace), -1)
    source = np.append(records.stream, -1)[pairs]
    from_load = (source >= 0) & loading[source]
    layered = np.flatnonzero(from_load & ~loading[waits.stream])
    opening = np.flatnonzero((source >= 0) & ~from_load & loading[waits.stream])
    layer = _number_layers(trace, layered, mover)
    first = layered[np.unique(layer, return_index=True)[1]]
    record_layer = np.full(len(records), -1, dtype=np.int64)
    record_layer[pairs[layered[::-1]]] = layer[::-1]
    used = np.unique(pairs[pairs >= 0])
    begin, op_load = _groups_and_loads(trace, _Loads(used, record_layer, opening, loading), mover)
    return EventLayers(
        wait=waits.call[first],
        stream=waits.stream[first],
        begin=begin[pairs[first]],
        op_load=op_load,
        op_compute=_computes(trace, first),
    )


@dataclass(frozen=True)
class _Loads:
    """What the loads of a trace are cut by: records that a wait uses, and waits that open a group of loads."""

    used: Ints
    """rows of ``Trace.event_records``, in the order of their calls"""
    layer: Ints
    """for each record the layer whose wait uses it first, or -1"""
    opening: Ints
    """rows of ``Trace.event_waits``: load streams that wait for compute"""
    loading: Flags
    """which streams carry loads"""


def _load_streams(trace: Trace, carries_loads: Flags, mover: Flags) -> Flags:
    """Return which streams carry loads and do not compute: what they run is mostly copies or mover kernels."""
    operations = trace.operations
    runs = ((operations.kind == Kind.KERNEL) & ~mover) | (operations.kind == Kind.GRAPH)
    computed = np.bincount(operations.stream[runs], minlength=len(trace.streams))
    moved = np.bincount(operations.stream[_moves(trace, mover)], minlength=len(trace.streams))
    loading: Flags = carries_loads & (moved > computed)
    return loading


def _moves(trace: Trace, mover: Flags) -> Flags:
    moves: Flags = mover | (trace.operations.direction == Direction.H2D)
    return moves


def _number_layers(trace: Trace, layered: Ints, mover: Flags) -> Ints:
    """Return the layer of each wait, numbered in the order of their first waits.

    A wait opens a layer when its stream was given something to compute since its wait before.
    """
    operations = trace.operations
    works = (operations.launch >= 0) & (operations.kind != Kind.COPY) & ~mover
    calls, stream = trace.event_waits.call[layered], trace.event_waits.stream[layered]
    opens = np.zeros(len(layered), dtype=bool)
    for one in np.unique(stream).tolist():
        own = np.flatnonzero(stream == one)
        done = np.searchsorted(np.sort(operations.launch[works & (operations.stream == one)]), calls[own])
        opens[own] = np.concatenate(([True], done[1:] > done[:-1]))
    number = np.cumsum(opens) - 1
    for one in np.unique(stream).tolist():
        own = np.flatnonzero(stream == one)
        number[own] = np.maximum.accumulate(np.where(opens[own], number[own], 0))
    return number


def _groups_and_loads(trace: Trace, loads: _Loads, mover: Flags) -> tuple[Ints, Ints]:
    """Return, for each record, the call that opened its group of loads, and for each operation the layer it loads.

    An operation belongs to the next used record of its stream, unless the group of that record was opened later.
    """
    operations, records = trace.operations, trace.event_records
    begin = np.full(len(records), -1, dtype=np.int64)
    op_load = np.full(len(operations), -1, dtype=np.int64)
    moves = _moves(trace, mover) & (operations.launch >= 0)
    for stream in np.flatnonzero(loads.loading).tolist():
        own = loads.used[records.stream[loads.used] == stream]
        if not len(own):
            continue
        opened = trace.event_waits.call[loads.opening[trace.event_waits.stream[loads.opening] == stream]]
        begin[own] = np.append(opened, -1)[np.searchsorted(opened, records.call[own]) - 1]
        rows = np.flatnonzero(moves & (operations.stream == stream))
        following = np.searchsorted(records.call[own], operations.launch[rows])
        rows, following = rows[following < len(own)], following[following < len(own)]
        since = begin[own[following]]
        op_load[rows] = np.where(operations.launch[rows] > since, loads.layer[own[following]], -1)
    return begin, op_load


def _computes(trace: Trace, first: Ints) -> Ints:
    """Return, for each operation, the layer that its stream last waited for before it was launched, or -1."""
    operations, waits = trace.operations, trace.event_waits
    found = np.full(len(operations), -1, dtype=np.int64)
    for stream in np.unique(waits.stream[first]).tolist():
        layers = np.flatnonzero(waits.stream[first] == stream)
        rows = np.flatnonzero((operations.stream == stream) & (operations.launch >= 0))
        at = np.searchsorted(waits.call[first[layers]], operations.launch[rows]) - 1
        found[rows] = np.where(at >= 0, layers[at], -1)
    return found
