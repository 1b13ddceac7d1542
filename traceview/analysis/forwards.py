"""Finds the forwards of a trace, and which operation belongs to which layer of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.event_layers import find_event_layers
from traceview.analysis.event_places import place_by_events
from traceview.analysis.naming import Named, NamedRanges, RangeNames, compile_pattern, read_names
from traceview.analysis.roles import MOVER_KERNEL, Role, find_roles, is_mover, load_streams
from traceview.analysis.spans import Span, place_by_names
from traceview.analysis.submissions import Submissions, find_submissions
from traceview.errors import SelectionError
from traceview.model import Content, Kind

if TYPE_CHECKING:
    from traceview.analysis.spans import Placement
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
        rows: Ints = self.operations[self.role == role]
        return rows


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
    by_name = placed.meaning.copy()
    if _asks_events(named, options.layers_from):
        layers = find_event_layers(trace, by_share, mover)
        spans, placed = place_by_events(trace, named, (spans, placed), layers, options.layers_per_forward)
    submissions = find_submissions(trace, named, by_name, placed)
    kept = trace.capture.kept
    first = kept.first if kept else 0
    found = [
        _forward(trace, spans[number], first + number, rows, placed, (by_share, mover, by_name, submissions))
        for number, rows in _by_span_and_device(trace, placed)
    ]
    computing = [one for one in found if (one.role == Role.COMPUTE).any() and _tells_compute(trace, one)]
    known = kept.warmup if kept and options.warmup is None else None
    return _select(_mark_warmup(computing, options.warmup, known), options.selected, first + len(spans))


def _tells_compute(trace: Trace, forward: Forward) -> bool:
    """Return whether what computes in a forward can be told: kernels were captured, and almost all have a launch.

    Otherwise time that the device computes would look like time that it waits.
    """
    operations = trace.operations
    runs = np.isin(operations.kind, (Kind.KERNEL, Kind.GRAPH))
    if not runs.any():
        return Content.KERNELS not in trace.capture.missing
    untold = np.flatnonzero(runs & (operations.launch < 0))
    places = [(trace.streams[one].process, trace.streams[one].device) for one in operations.stream[untold].tolist()]
    untold = untold[[place == (forward.process, forward.device) for place in places]]
    works = np.concatenate((forward.rows(Role.LOAD), forward.rows(Role.COMPUTE)))
    begin, end = operations.start[works].min(), operations.end[forward.rows(Role.COMPUTE)].max()
    inside = intervals.clip(intervals.union(operations.start[untold], operations.end[untold]), int(begin), int(end))
    return bool(inside.length <= UNTOLD_SHARE * (end - begin))


def _asks_events(named: NamedRanges, layers_from: str | None) -> bool:
    """Return whether events are asked for layers: always, never, or where loads or computes have no names."""
    both = (named.meaning == Named.LOAD).any() and (named.meaning == Named.COMPUTE).any()
    return layers_from == "events" or (layers_from is None and not both)


def _by_span_and_device(trace: Trace, placed: Placement) -> list[tuple[int, Ints]]:
    """Return, for each span and device, the rows of its operations in start order."""
    devices = trace.operation_device()
    inside = np.flatnonzero(placed.span >= 0)
    order = inside[np.lexsort((inside, devices[inside], placed.span[inside]))]
    if not len(order):
        return []
    changes = (placed.span[order][1:] != placed.span[order][:-1]) | (devices[order][1:] != devices[order][:-1])
    return [(int(placed.span[rows[0]]), rows) for rows in np.split(order, np.flatnonzero(changes) + 1)]


def _forward(
    trace: Trace, span: Span, index: int, rows: Ints, placed: Placement, known: tuple[Flags, Flags, Ints, Submissions]
) -> Forward:
    by_share, mover, by_name, submissions = known
    meaning = placed.meaning[rows]
    role = find_roles(trace.operations.take(rows), meaning, by_share, mover[rows])
    layered = (meaning > Named.FORWARD) & (placed.layer[rows] >= 0)
    return Forward(
        name=span.name,
        index=index,
        process=trace.threads[span.thread].process,
        device=trace.streams[int(trace.operations.stream[rows[0]])].device,
        thread=span.thread,
        warmup=False,
        start=span.start,
        end=span.end,
        layers_from=_origin(by_name[rows][layered] > Named.FORWARD),
        operations=rows,
        role=role,
        layer=np.where((role == Role.LOAD) | (role == Role.COMPUTE), placed.layer[rows], -1),
        ranges=placed.range[rows],
        submissions=submissions,
    )


def _origin(named: Flags) -> str | None:
    """Return where a forward's layers come from, given which of its layers' operations were named."""
    if not len(named):
        return None
    return "nvtx" if named.all() else "nvtx+events" if named.any() else "events"


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
