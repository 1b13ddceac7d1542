"""Finds the forwards of a trace, and which operation belongs to which layer of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.event_layers import find_event_layers
from traceview.analysis.event_places import place_by_events
from traceview.analysis.naming import Named, NamedRanges, RangeNames, compile_pattern, read_names
from traceview.analysis.places import used
from traceview.analysis.roles import MOVER_KERNEL, Role, find_roles, is_mover, load_streams
from traceview.analysis.spans import Span, place_by_names
from traceview.analysis.submissions import Submissions, find_submissions
from traceview.errors import SelectionError
from traceview.model import Content, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.spans import Placement
    from traceview.intervals import Intervals
    from traceview.model import Flags, Ints, Trace

_NUMBER = re.compile(r"(?<![A-Za-z0-9)\]])-\d+$|\d+$")
_NUMBER_LENGTH = 10

UNTOLD_SHARE = 0.05
"""Share of a forward's time above which kernels without a launch, which may be its own, make it one to leave out."""


@dataclass(frozen=True)
class ForwardOptions:
    """How forwards are found and which of them are measured."""

    names: RangeNames = field(default_factory=RangeNames)
    warmup: int | None = None
    """how many forwards of each process are warm-up; None: those numbered below 0, else the first"""
    selected: tuple[int | None, int | None] | None = None
    """first and last + 1 index of the forwards to keep"""
    layers_from: str | None = None
    """``nvtx``: by names only; ``events``: names of loads and computes do not count; None: names, else events"""
    layers_per_forward: int | None = None
    """how many layers found by events make a forward where no range names one"""
    mover_kernel: str = MOVER_KERNEL
    """expression for the names of kernels that copy"""


@dataclass(frozen=True)
class Forward:
    """One forward on one device: its operations in start order and what each is there for."""

    name: str
    index: int
    process: int
    device: int
    thread: int
    """index into ``Trace.threads`` of the thread that ran it"""
    warmup: bool
    start: int
    """when the forward's range opened, ns"""
    end: int
    layers_from: str | None
    """``nvtx``, ``events``, ``nvtx+events``, or None where no layer was found"""
    operations: Ints
    """rows of ``Trace.operations``"""
    role: Ints
    """:class:`~traceview.analysis.roles.Role` of each operation"""
    layer: Ints
    """layer of each load or compute operation, or -1"""
    ranges: Ints
    """row of ``Trace.ranges`` that names each operation as a load or compute, or -1"""
    submissions: Submissions
    """when threads submitted loads, of this and all other forwards"""

    def rows(self, role: Role) -> Ints:
        """Return the rows of ``Trace.operations`` that have one role, in start order."""
        rows: Ints = self.operations[self.role == int(role)]
        return rows

    @property
    def layers(self) -> list[int]:
        """Return the numbers of the layers that load or compute, in ascending order."""
        return list(dict.fromkeys(layer for layer, _ in self.by_layer[1]))

    def layer_rows(self, layer: int, role: Role) -> Ints:
        """Return the rows of ``Trace.operations`` of one layer and role, in start order."""
        return self.operations[self._positions(layer, role)]

    def loads_of(self, layer: int) -> tuple[Ints, Ints]:
        """Return the rows of a layer's load operations, and of the ranges that name them."""
        positions = self._positions(layer, Role.LOAD)
        return self.operations[positions], self.ranges[positions]

    def _positions(self, layer: int, role: Role) -> Ints:
        order, parts = self.by_layer
        return order[parts.get((layer, int(role)), slice(0))]

    @cached_property
    def by_layer(self) -> tuple[Ints, dict[tuple[int, int], slice]]:
        """Which operations are of a layer, by layer and role, then by start; and the part of each (layer, role)."""
        layered = np.flatnonzero(self.layer >= 0)
        key = self.layer[layered] * len(Role) + self.role[layered]
        order = np.argsort(key, kind="stable")
        key = key[order]
        begins = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
        cuts = pairwise([*begins.tolist(), len(key)])
        names = (divmod(one, len(Role)) for one in key[begins].tolist())
        return layered[order], {name: slice(*cut) for name, cut in zip(names, cuts, strict=True)}


def find_forwards(trace: Trace, options: ForwardOptions | None = None) -> tuple[Forward, ...]:
    """Return every (forward, device that computes in it), in the order in which forwards begin.

    A forward without a compute operation on a device has no entry there. Raises ``SelectionError`` where
    ``options.selected`` keeps none of the forwards that there are.
    """
    options = options or ForwardOptions()
    named = read_names(trace, options.names)
    compile_pattern("--mover-kernel", options.mover_kernel)
    mover = is_mover(trace, options.mover_kernel)
    by_share = load_streams(trace, mover)
    if options.layers_from == "events":
        named = NamedRanges(np.where(named.meaning == Named.FORWARD, named.meaning, int(Named.NOTHING)), named.layer)
    spans, placed = place_by_names(trace, named)
    by_name = placed.meaning
    if _asks_events(named, options.layers_from):
        layers = find_event_layers(trace, by_share, mover)
        spans, placed = place_by_events(trace, named, (spans, placed), layers, options.layers_per_forward)
    submissions = find_submissions(trace, named, by_name, placed)
    kept = trace.capture.kept
    first = kept.first if kept else 0
    found = _forwards(trace, (spans, first), placed, by_name, (by_share, mover, submissions))
    untold = _untold(trace)
    found = [forward for forward in found if untold is not None and _tells_compute(trace, forward, untold)]
    known = kept.warmup if kept and options.warmup is None else None
    return _select(_mark_warmup(found, options.warmup, known), options.selected, first + len(spans))


def _untold(trace: Trace) -> dict[tuple[int, int], Intervals] | None:
    """Return when kernels without a launch ran, by process and device; None where the capture lacks all kernels."""
    operations = trace.operations
    runs = (operations.kind == int(Kind.KERNEL)) | (operations.kind == int(Kind.GRAPH))
    if not runs.any():
        return None if Content.KERNELS in trace.capture.missing else {}
    rows = np.flatnonzero(runs & (operations.launch < 0))
    found = {}
    for process, device in {
        (trace.streams[one].process, trace.streams[one].device) for one in used(operations.stream[rows])
    }:
        here = (trace.stream_processes() == process) & (trace.stream_devices() == device)
        own = rows[here[operations.stream[rows]]]
        found[process, device] = intervals.union(operations.start[own], operations.end[own])
    return found


def _tells_compute(trace: Trace, forward: Forward, untold: dict[tuple[int, int], Intervals]) -> bool:
    """Return whether what computes in a forward can be told: almost all kernels have a launch.

    Otherwise time that the device computes would look like time that it waits.
    """
    others = untold.get((forward.process, forward.device))
    if others is None:
        return True
    operations = trace.operations
    compute = forward.rows(Role.COMPUTE)
    works = np.concatenate((forward.rows(Role.LOAD), compute))
    begin, end = int(operations.start[works].min()), int(operations.end[compute].max())
    return intervals.clip(others, begin, end).length <= UNTOLD_SHARE * (end - begin)


def _asks_events(named: NamedRanges, layers_from: str | None) -> bool:
    """Return whether events are asked for layers: always, never, or where loads or computes have no names."""
    both = (named.meaning == Named.LOAD).any() and (named.meaning == Named.COMPUTE).any()
    return layers_from == "events" or (layers_from is None and not both)


def _forwards(
    trace: Trace,
    named: tuple[Sequence[Span], int],
    placed: Placement,
    by_name: Ints,
    known: tuple[Flags, Flags, Submissions],
) -> list[Forward]:
    """Return each (span, device) that computes: cut from columns of all of them, since each cut costs little."""
    spans, first = named
    by_share, mover, submissions = known
    rows, begins = _by_span_and_device(trace, placed)
    number = np.repeat(np.arange(len(begins)), np.diff(begins, append=len(rows)))
    role = find_roles(trace, rows, number, placed.meaning[rows], by_share, mover[rows])
    layer = np.where((role == int(Role.LOAD)) | (role == int(Role.COMPUTE)), placed.layer[rows], -1)
    columns = (rows, role, layer, placed.range[rows])
    numbers, origins = placed.span[rows[begins]].tolist(), _origins(placed, by_name, rows, begins)
    cuts = pairwise([*begins.tolist(), len(rows)])
    return [
        _forward(trace, (spans[at], first + at), origin, [column[low:high] for column in columns], submissions)
        for at, origin, (low, high) in zip(numbers, origins, cuts, strict=True)
        if (role[low:high] == int(Role.COMPUTE)).any()
    ]


def _by_span_and_device(trace: Trace, placed: Placement) -> tuple[Ints, Ints]:
    """Return the rows of operations by span and device, in start order, and where those of each pair begin."""
    inside = np.flatnonzero(placed.span >= 0)
    devices, device = np.unique(trace.stream_devices(), return_inverse=True)
    key = placed.span[inside].astype(np.int64) * max(len(devices), 1) + device[trace.operations.stream[inside]]
    order = np.argsort(key, kind="stable")
    key = key[order]
    return inside[order], np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])


def _forward(
    trace: Trace, place: tuple[Span, int], origin: str | None, parts: Sequence[Ints], submissions: Submissions
) -> Forward:
    span, index = place
    operations, role, layer, ranges = parts
    return Forward(
        name=span.name,
        index=index,
        process=trace.threads[span.thread].process,
        device=trace.streams[int(trace.operations.stream[operations[0]])].device,
        thread=span.thread,
        warmup=False,
        start=span.start,
        end=span.end,
        layers_from=origin,
        operations=operations,
        role=role,
        layer=layer,
        ranges=ranges,
        submissions=submissions,
    )


def _origins(placed: Placement, by_name: Ints, rows: Ints, begins: Ints) -> list[str | None]:
    """Return where each forward's layers come from, by which of its layers' operations were named."""
    if not len(rows):
        return []
    layered = (placed.meaning[rows] > int(Named.FORWARD)) & (placed.layer[rows] >= 0)
    named = layered & (by_name[rows] > int(Named.FORWARD))
    counts = (np.add.reduceat(flags, begins, dtype=np.int64).tolist() for flags in (layered, named))
    return [
        None if not all_ else "nvtx" if some == all_ else "nvtx+events" if some else "events"
        for all_, some in zip(*counts, strict=True)
    ]


def _mark_warmup(found: list[Forward], warmup: int | None, known: tuple[int, ...] | None) -> list[Forward]:
    """Mark the forwards numbered below 0, else the first of each process; a process's only forward is no warm-up.

    ``known`` are the indices of those that a slimmed capture says were warm-up in the whole.
    """
    if known is not None:
        return [replace(forward, warmup=forward.index in known) for forward in found]
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
    found = _NUMBER.search(name[-2 * _NUMBER_LENGTH :])
    return int(found.group()) if found and len(found.group()) < _NUMBER_LENGTH else 0


def _select(found: list[Forward], selected: tuple[int | None, int | None] | None, count: int) -> tuple[Forward, ...]:
    if selected is None:
        return tuple(found)
    indices = range(count)[slice(*selected)]
    kept = tuple(forward for forward in found if forward.index in indices)
    if found and not kept:
        there = ", ".join(dict.fromkeys(f"{forward.index} ({forward.name})" for forward in found))
        raise SelectionError("no forward lies in this selection", f"there is: {there}")
    return kept
