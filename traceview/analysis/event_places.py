"""Adds what events tell to what names tell: layers of unnamed work, and forwards that nobody named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.naming import Named
from traceview.analysis.passes import make_spans, split_passes
from traceview.analysis.spans import Placement, Span, innermost_range, outermost

if TYPE_CHECKING:
    from traceview.analysis.event_layers import EventLayers
    from traceview.analysis.naming import NamedRanges
    from traceview.model import Ints, Trace


def place_by_events(
    trace: Trace,
    named: NamedRanges,
    by_names: tuple[list[Span], Placement],
    layers: EventLayers,
    per_forward: int | None,
) -> tuple[list[Span], Placement]:
    """Return all forwards in start order, named and not, with the layers that only events tell of filled in.

    A named forward bounds the layers that are waited for inside it. What is named keeps its name.
    """
    spans, placed = by_names
    outer = outermost(trace.ranges, np.flatnonzero(named.meaning == Named.FORWARD))
    forward = innermost_range(trace, outer, layers.wait)
    span = np.where(forward >= 0, np.searchsorted(outer, forward), -1)
    free = np.flatnonzero(span < 0)
    passes = split_passes(trace, layers, free, per_forward)
    found = make_spans(trace, layers, free, passes)
    span[free] = np.where(passes >= 0, len(spans) + passes, -1)
    op_span = _launched_in(trace, found, placed.span, len(spans))
    number = _number_layers(trace, placed, layers, span)
    filled = _fill(replace(placed, span=op_span), layers, span, number)
    return _in_start_order([*spans, *found], filled)


def _launched_in(trace: Trace, found: list[Span], placed: Ints, first: int) -> Ints:
    """Return the span of each operation, with those filled in that were launched in a span without a name."""
    op_span = placed.copy()
    free = np.flatnonzero((placed < 0) & (trace.operations.launch >= 0))
    calls = trace.operations.launch[free]
    for thread in {span.thread for span in found}:
        own = [number for number, span in enumerate(found) if span.thread == thread]
        mine = np.flatnonzero(trace.calls.thread[calls] == thread)
        starts, ends = [found[number].start for number in own], [found[number].end for number in own]
        at = intervals.innermost(starts, ends, trace.calls.start[calls[mine]])
        op_span[free[mine]] = np.where(at >= 0, first + np.array(own, dtype=np.int64)[at], -1)
    return op_span


def _number_layers(trace: Trace, placed: Placement, layers: EventLayers, span: Ints) -> Ints:
    """Return the number of each layer: the one that its load or its first compute is named by, else its place."""
    number = np.full(len(layers), -1, dtype=np.int64)
    for own, meaning in ((layers.op_compute, Named.COMPUTE), (layers.op_load, Named.LOAD)):
        rows = np.flatnonzero((own >= 0) & (placed.meaning == meaning))
        rows = rows[np.argsort(-trace.operations.launch[rows], kind="stable")]
        number[own[rows]] = placed.layer[rows]
    order = np.argsort(span, kind="stable")
    place = np.empty(len(layers), dtype=np.int64)
    place[order] = np.arange(len(layers)) - np.searchsorted(span[order], span[order])
    return np.where(number >= 0, number, place)


def _fill(placed: Placement, layers: EventLayers, span: Ints, number: Ints) -> Placement:
    """Return the placement with unnamed loads and computes filled in, in forwards that name no load or no compute."""
    op_span, meaning, layer = placed.span.copy(), placed.meaning.copy(), placed.layer.copy()
    span_of, number_of = np.append(span, -1), np.append(number, -1)
    for own, kind in ((layers.op_compute, Named.COMPUTE), (layers.op_load, Named.LOAD)):
        by_name = np.unique(placed.span[placed.meaning == kind])
        target = span_of[own]
        fill = (target >= 0) & (placed.meaning == Named.NOTHING) & ~np.isin(target, by_name)
        if kind is Named.COMPUTE:
            # what a stream was given after the forward's end belongs to no layer
            fill &= target == op_span
        op_span[fill], meaning[fill], layer[fill] = target[fill], int(kind), number_of[own[fill]]
    return replace(placed, span=op_span, meaning=meaning, layer=layer)


def _in_start_order(spans: list[Span], placed: Placement) -> tuple[list[Span], Placement]:
    order = sorted(range(len(spans)), key=lambda number: (spans[number].start, spans[number].end))
    rank = np.full(len(spans) + 1, -1, dtype=np.int64)
    rank[order] = np.arange(len(spans))
    return [spans[number] for number in order], replace(placed, span=rank[placed.span])
