"""Where one pass over the layers ends and the next begins, when only events tell of the layers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.spans import Span
from traceview.model import CallKind, Kind

if TYPE_CHECKING:
    from traceview.analysis.event_layers import EventLayers
    from traceview.model import Flags, Ints, Trace

PERIOD_MATCH = 0.95
"""Share of layers that must run the same kernels as those one period later for the period to count."""

LONGEST_PASS = 1024
"""Layers that a pass can have for its period to be looked for."""

UNNAMED = "unnamed"


def split_passes(trace: Trace, layers: EventLayers, chosen: Ints, per_forward: int | None) -> Ints:
    """Return the pass of each of the ``chosen`` layers, numbered in order, or -1 where nothing tells passes apart.

    A pass has ``per_forward`` layers where that is given. Else it begins where the load stream waited for compute
    before it loaded on, else where the kernels that layers run repeat, else after a layer in which the host waits.
    """
    passes = np.full(len(chosen), -1, dtype=np.int64)
    count = 0
    for stream in np.unique(layers.stream[chosen]).tolist():
        own = np.flatnonzero(layers.stream[chosen] == stream)
        starts = _starts(trace, layers, chosen[own], per_forward)
        if starts is not None:
            passes[own] = count + np.cumsum(starts) - 1
            count += int(starts.sum())
    return passes


def _starts(trace: Trace, layers: EventLayers, own: Ints, per_forward: int | None) -> Flags | None:
    """Return which layers begin a pass, or None where nothing tells."""
    position = np.arange(len(own))
    if per_forward is not None:
        every: Flags = position % per_forward == 0
        return every
    begin = layers.begin[own]
    opens = np.concatenate(([True], begin[1:] != begin[:-1]))
    if (begin >= 0).any() and 2 * opens.sum() <= len(own):
        return opens
    signature, waits = _signatures(trace, layers, own)
    period = _period(signature) or _period(2 * signature + waits)
    if period is not None:
        repeats: Flags = position % period == 0
        return repeats
    if waits.sum() > 0 and 2 * waits.sum() <= len(own):
        return np.concatenate(([True], waits[:-1]))
    return None


def _signatures(trace: Trace, layers: EventLayers, own: Ints) -> tuple[Ints, Flags]:
    """Return a number for what each layer runs, equal for equal kernel sequences, and whether the host waits in it."""
    operations, calls = trace.operations, trace.calls
    rows = np.flatnonzero(np.isin(layers.op_compute, own) & (operations.kind != Kind.COPY))
    rows = rows[np.lexsort((operations.launch[rows], layers.op_compute[rows]))]
    bounds = np.searchsorted(layers.op_compute[rows], np.append(own, own[-1] + 1))
    until = np.append(layers.wait[own][1:], len(calls))
    syncs = np.flatnonzero((calls.kind == CallKind.SYNC) & (calls.thread == calls.thread[layers.wait[own[0]]]))
    waits = np.searchsorted(syncs, until) > np.searchsorted(syncs, layers.wait[own])
    seen: dict[bytes, int] = {}
    numbers = [
        seen.setdefault(operations.name[rows[low:high]].tobytes(), len(seen)) for low, high in pairwise(bounds.tolist())
    ]
    return np.array(numbers, dtype=np.int64), waits


def _period(signature: Ints) -> int | None:
    """Return the smallest period with which layers repeat, or None for layers that are all alike or never repeat."""
    if len(np.unique(signature)) < 2:
        return None
    for period in range(2, min(len(signature) // 2, LONGEST_PASS) + 1):
        if np.mean(signature[period:] == signature[:-period]) >= PERIOD_MATCH:
            return period
    return None


def make_spans(trace: Trace, layers: EventLayers, chosen: Ints, passes: Ints) -> list[Span]:
    """Return the span of each pass: from the wait that opened its loads to the host's wait for its last layer.

    Where no such wait opened it, it begins when the host last stopped waiting, and where that was before the last layer
    of the pass before it, with its first layer; where the host does not wait for the last layer, it ends where the next
    pass begins, else with the trace.
    """
    calls = trace.calls
    spans: list[Span] = []
    for number in range(int(passes.max(initial=-1)), -1, -1):
        own = chosen[passes == number]
        thread = int(calls.thread[layers.wait[own[0]]])
        syncs = np.flatnonzero((calls.kind == CallKind.SYNC) & (calls.thread == thread))
        following = spans[-1].start if spans and spans[-1].thread == thread else trace.end_ns
        start = _start(trace, layers, own, syncs)
        before = chosen[passes == number - 1]
        same = len(before) and layers.stream[before[-1]] == layers.stream[own[0]]
        if same and start <= trace.calls.start[layers.wait[before[-1]]]:
            # both passes were opened by one wait, or no wait of the host stands between them
            start = int(trace.calls.start[layers.wait[own[0]]])
        spans.append(Span(UNNAMED, thread, start, _end(trace, layers, int(own[-1]), syncs, following)))
    return spans[::-1]


def _start(trace: Trace, layers: EventLayers, own: Ints, syncs: Ints) -> int:
    first, begin = int(layers.wait[own[0]]), layers.begin[own]
    if begin[0] >= 0 and (begin == begin[0]).all():
        return int(trace.calls.start[begin[0]])
    before = syncs[syncs < first]
    return int(trace.calls.end[before[-1]] if len(before) else trace.calls.start[first])


def _end(trace: Trace, layers: EventLayers, last: int, syncs: Ints, following: int) -> int:
    wait = int(layers.wait[last])
    computes = trace.operations.launch[layers.op_compute == last]
    since = int(computes.min()) if len(computes) else wait
    after = syncs[syncs > since]
    until = int(trace.calls.end[after[0]]) if len(after) else trace.end_ns
    return min(until, following) if following > trace.calls.start[since] else until
