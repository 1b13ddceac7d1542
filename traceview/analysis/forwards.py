"""Finds the forwards of a trace, and which operation belongs to which layer of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.events import pair_waits, rows_by_stream
from traceview.analysis.naming import Named, NamedRanges, RangeNames, read_names
from traceview.analysis.roles import MOVER_KERNEL, Role, find_roles, is_mover, load_streams
from traceview.errors import SelectionError

if TYPE_CHECKING:
    from traceview.model import Ints, Ranges, Trace

_NUMBER = re.compile(r"-?\d+$")


@dataclass(frozen=True)
class ForwardOptions:
    """How forwards are found and which of them are measured."""

    names: RangeNames = field(default_factory=RangeNames)
    warmup: int | None = None
    """how many forwards of each process are warm-up; None: those numbered below 0, else the first"""
    selected: tuple[int | None, int | None] | None = None
    """first and last + 1 index of the forwards to keep"""
    mover_kernel: str = MOVER_KERNEL


@dataclass(frozen=True)
class Forward:
    """One forward on one device: its operations in start order and what each is there for."""

    name: str
    index: int
    process: int
    device: int
    thread: int
    """index into ``Trace.threads`` of the thread that opened the range"""
    warmup: bool
    start: int
    """when the forward's range opened, ns"""
    end: int
    layers_from: str | None
    """``nvtx``, ``events``, or None where no layer was found"""
    operations: Ints
    """rows of ``Trace.operations``"""
    role: Ints
    """:class:`~traceview.analysis.roles.Role` of each operation"""
    layer: Ints
    """layer of each load or compute operation, or -1"""
    load_ranges: Ints
    """rows of ``Trace.ranges``: the ranges in which the trace submits loads"""

    def rows(self, role: Role) -> Ints:
        """Return the rows of ``Trace.operations`` that have one role, in start order."""
        rows: Ints = self.operations[self.role == role]
        return rows


def find_forwards(trace: Trace, options: ForwardOptions | None = None) -> tuple[Forward, ...]:
    """Return every (forward range, device that computes in it), in the order of the ranges.

    A forward range without a compute operation on a device has no entry there. Raises ``SelectionError`` where
    ``options.selected`` keeps none of the forwards that there are.
    """
    options = options or ForwardOptions()
    named = read_names(trace, options.names)
    outer = outermost(trace.ranges, np.flatnonzero(named.meaning == Named.FORWARD))
    if not len(outer):
        return ()
    layered = np.flatnonzero(named.meaning > Named.FORWARD)
    op_range = _innermost_of_launch(trace, layered)
    op_forward = _innermost_of_launch(trace, outer)
    elsewhere = _forward_of_far_ranges(trace, named, outer, op_range)
    far = (op_forward < 0) & (op_range >= 0)
    op_forward[far] = elsewhere[op_range[far]]
    mover = is_mover(trace, options.mover_kernel)
    found = _entries(trace, named, (outer, op_forward, op_range), mover)
    return _select(_mark_warmup(found, outer, trace, options.warmup), options.selected, len(outer))


def outermost(ranges: Ranges, rows: Ints) -> Ints:
    """Return those of ``rows`` that lie in no other of them on their thread."""
    kept = []
    for thread in np.unique(ranges.thread[rows]):
        own = rows[ranges.thread[rows] == thread]
        reach = np.maximum.accumulate(ranges.end[own])
        inside = np.concatenate(([False], ranges.end[own][1:] <= reach[:-1]))
        kept.append(own[~inside])
    return np.sort(np.concatenate(kept)) if kept else rows


def innermost_range(trace: Trace, rows: Ints, calls: Ints) -> Ints:
    """Return, for each call, the innermost of the ranges ``rows`` that it started in on its own thread, or -1."""
    found = np.full(len(calls), -1, dtype=np.int64)
    threads = trace.calls.thread[calls]
    for thread in np.unique(trace.ranges.thread[rows]):
        own = rows[trace.ranges.thread[rows] == thread]
        mine = np.flatnonzero(threads == thread)
        at = intervals.innermost(trace.ranges.start[own], trace.ranges.end[own], trace.calls.start[calls[mine]])
        found[mine] = np.where(at >= 0, own[at], -1)
    return found


def _innermost_of_launch(trace: Trace, rows: Ints) -> Ints:
    """Return, for each operation, the innermost of the ranges ``rows`` that it was launched in, or -1."""
    found = np.full(len(trace.operations), -1, dtype=np.int64)
    launched = np.flatnonzero(trace.operations.launch >= 0)
    found[launched] = innermost_range(trace, rows, trace.operations.launch[launched])
    return found


def _forward_of_far_ranges(trace: Trace, named: NamedRanges, outer: Ints, op_range: Ints) -> Ints:
    """Return, for each range, the forward that its operations belong to though it lies in none on its own thread.

    A load belongs where its event is waited for; anything else where its range starts.
    """
    ranges = trace.ranges
    found = np.full(len(ranges), -1, dtype=np.int64)
    far = np.unique(op_range[op_range >= 0])
    process = np.array([thread.process for thread in trace.threads], dtype=np.int64)
    for one in np.unique(process[ranges.thread[outer]]):
        own = outer[process[ranges.thread[outer]] == one]
        mine = far[process[ranges.thread[far]] == one]
        at = intervals.innermost(ranges.start[own], ranges.end[own], ranges.start[mine])
        found[mine] = np.where(at >= 0, own[at], -1)
    loads = far[named.meaning[far] == Named.LOAD]
    waited = _forward_of_waits(trace, outer, op_range, loads)
    found[loads] = np.where(waited >= 0, waited, found[loads])
    return found


def _forward_of_waits(trace: Trace, outer: Ints, op_range: Ints, loads: Ints) -> Ints:
    """Return, for each load range, the forward that first waits for the event recorded after its operations, or -1."""
    found = np.full(len(loads), -1, dtype=np.int64)
    pairs = pair_waits(trace)
    if not len(loads) or not (pairs >= 0).any():
        return found
    wait_forward = innermost_range(trace, outer, trace.event_waits.call)
    wait_forward[trace.event_waits.call < 0] = -1
    forward_of_record: dict[int, int] = {}
    for record, forward in zip(pairs.tolist(), wait_forward.tolist(), strict=True):
        if record >= 0 and forward >= 0:
            forward_of_record.setdefault(record, forward)
    records = rows_by_stream(trace.event_records, len(trace.streams))
    operations = trace.operations
    by_range = np.argsort(op_range, kind="stable")
    sorted_range = op_range[by_range]
    for position, row in enumerate(loads.tolist()):
        low, high = np.searchsorted(sorted_range, (row, row + 1))
        own = by_range[low:high]
        last = own[np.argmax(operations.launch[own])]
        candidates = records[operations.stream[last]]
        after = np.searchsorted(trace.event_records.call[candidates], operations.launch[last], side="right")
        if after < len(candidates):
            found[position] = forward_of_record.get(int(candidates[after]), -1)
    return found


def _entries(trace: Trace, named: NamedRanges, placed: tuple[Ints, Ints, Ints], mover: np.ndarray) -> list[Forward]:
    """Return one forward per (range, device) that has a compute operation."""
    outer, op_forward, op_range = placed
    by_share = load_streams(trace, mover)
    devices = trace.operation_device()
    inside = np.flatnonzero(op_forward >= 0)
    order = inside[np.lexsort((inside, devices[inside], op_forward[inside]))]
    keys = np.stack((op_forward[order], devices[order]))
    cuts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
    load_ranges = np.flatnonzero(named.meaning == Named.LOAD)
    found = []
    for rows in np.split(order, cuts) if len(order) else []:
        row = int(op_forward[rows[0]])
        of_range = np.where(op_range[rows] >= 0, named.meaning[op_range[rows]], int(Named.NOTHING))
        role = find_roles(trace.operations.take(rows), of_range, by_share, mover[rows])
        if not (role == Role.COMPUTE).any():
            continue
        layer = np.where(of_range > Named.FORWARD, named.layer[op_range[rows]], -1)
        thread = int(trace.ranges.thread[row])
        found.append(
            Forward(
                name=trace.names[trace.ranges.name[row]],
                index=int(np.searchsorted(outer, row)),
                process=trace.threads[thread].process,
                device=int(devices[rows[0]]),
                thread=thread,
                warmup=False,
                start=int(trace.ranges.start[row]),
                end=int(trace.ranges.end[row]),
                layers_from="nvtx" if (layer >= 0).any() else None,
                operations=rows,
                role=role,
                layer=np.where((role == Role.LOAD) | (role == Role.COMPUTE), layer, -1),
                load_ranges=load_ranges,
            )
        )
    return found


def _mark_warmup(found: list[Forward], outer: Ints, trace: Trace, warmup: int | None) -> list[Forward]:
    """Mark the forwards numbered below 0, else the first of each process; a process's only forward is no warm-up."""
    marked = []
    for process in dict.fromkeys(forward.process for forward in found):
        own = [forward for forward in found if forward.process == process]
        order = list(dict.fromkeys(forward.index for forward in own))
        numbered = {forward.index for forward in own if _number(forward.name) < 0}
        first = set(order[:1]) if len(order) > 1 else set()
        chosen = set(order[:warmup]) if warmup is not None else numbered or first
        marked += [replace(forward, warmup=forward.index in chosen) for forward in own]
    return sorted(marked, key=lambda forward: (forward.index, forward.device))


def _number(name: str) -> int:
    found = _NUMBER.search(name)
    return int(found.group()) if found and len(found.group()) < 10 else 0


def _select(found: list[Forward], selected: tuple[int | None, int | None] | None, count: int) -> tuple[Forward, ...]:
    if selected is None:
        return tuple(found)
    indices = range(count)[slice(*selected)]
    kept = tuple(forward for forward in found if forward.index in indices)
    if found and not kept:
        there = ", ".join(dict.fromkeys(f"{forward.index} ({forward.name})" for forward in found))
        raise SelectionError("no forward lies in this selection", f"there is: {there}")
    return kept
