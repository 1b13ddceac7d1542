"""Measures of one forward: makespan, first layer, exposed load, ideal, efficiency, layers; and their medians."""

from __future__ import annotations

from dataclasses import fields, replace
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from instrument.naming import DOMAIN
from traceview import intervals, report
from traceview.analysis.gaps import unseen_loads
from traceview.analysis.layer_times import LayerTimes
from traceview.analysis.roles import Role
from traceview.model import Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.accounting import Accounting
    from traceview.analysis.forwards import Forward
    from traceview.intervals import Intervals
    from traceview.model import Ints, Trace


def measure(trace: Trace, forward: Forward, accounting: Accounting, baseline: KernelBaseline) -> report.Forward:
    """Return all measures of one forward; those that need layers are None where it has none."""
    operations = trace.operations
    load, compute = (_busy(trace, forward.rows(role)) for role in (Role.LOAD, Role.COMPUTE))
    overlap = intervals.intersect(load, compute).length
    times = LayerTimes(trace, forward)
    told = unseen_loads(trace, forward) is None
    layers = _layers(trace, forward, accounting, times)
    if not told:
        layers = tuple(replace(one, load_busy_ns=None, load_pieces=None, load_bytes=None) for one in layers)
    first = next(iter(accounting.first_of_layer), None)
    exposed = [accounting.exposed_ns[layer] for layer in accounting.first_of_layer]
    loads = [layer.load_busy_ns or 0 for layer in layers]
    computes = [layer.compute_busy_ns for layer in layers]
    # a load whose layer does not compute in this forward delays nothing in it and is left out
    ideal = ideal_makespan(*(times.added_ns([*accounting.first_of_layer], role) for role in (Role.LOAD, Role.COMPUTE)))
    rows = forward.rows(Role.LOAD)
    # a forward in which no load was found says nothing about how its loads hide
    has_layers = bool(layers) and first is not None and any(loads)
    # layers that overtake each other are no pipeline in fixed order: its ideal says nothing of them
    ordered = has_layers and ideal <= accounting.makespan_ns
    measures = report.Measures(
        makespan_ns=accounting.makespan_ns,
        lead_in_ns=max(accounting.t0_ns - forward.start, 0),
        first_layer_exposed_ns=int(operations.start[accounting.first_of_layer[first]]) - accounting.t0_ns
        if first is not None and has_layers
        else None,
        exposed_load_ns=sum(exposed) if has_layers else None,
        exposed_load_later_ns=sum(exposed[1:]) if has_layers else None,
        ideal_ns=ideal if ordered else None,
        serial_ns=sum(loads) + sum(computes) if has_layers else None,
        pipeline_efficiency=ideal / accounting.makespan_ns if ordered and accounting.makespan_ns else None,
        hidden=overlap / load.length if load.length else None,
        load_busy_ns=load.length if told else None,
        compute_busy_ns=compute.length,
        compute_inflation_ns=baseline.inflation(forward),
        overlap_ns=overlap if told else None,
        load_pieces=_pieces(trace, rows) if told else None,
        load_bytes=_bytes(trace, rows, forward.ranges[forward.role == int(Role.LOAD)]) if told else None,
        accounting=accounting.categories,
    )
    return report.Forward(
        name=forward.name,
        index=forward.index,
        process=forward.process,
        device=forward.device,
        warmup=forward.warmup,
        t0_ns=accounting.t0_ns,
        t1_ns=accounting.t1_ns,
        layers_from=forward.layers_from,
        measures=measures,
        layers=layers,
        load_memory=_load_memory(trace, rows),
    )


def _load_memory(trace: Trace, rows: Ints) -> dict[str, int]:
    """Return the bytes of the copies among some operations by the kind of their host memory."""
    operations = trace.operations
    copies = rows[operations.kind[rows] == Kind.COPY]
    kinds = operations.memory[copies]
    return {
        Memory(kind).name.lower(): int(operations.n_bytes[copies[kinds == kind]].sum())
        for kind in np.unique(kinds).tolist()
    }


def ideal_makespan(loads: Sequence[int], computes: Sequence[int]) -> int:
    """Return the makespan of a two-stage flow shop in fixed order: each layer loads, then computes, nothing waits else.

    ``max over k of (sum of loads up to k + sum of computes from k)``; 0 without layers.
    """
    loaded = np.cumsum(np.array(loads, dtype=np.int64))
    remaining = np.cumsum(np.array(computes, dtype=np.int64)[::-1])[::-1]
    return int((loaded + remaining).max(initial=0))


def summarise(forwards: Sequence[report.Forward]) -> report.Summary | None:
    """Return medians over the forwards that are not warm-up, or None without any; ns and bytes rounded to int."""
    measured = [forward.measures for forward in forwards if not forward.warmup]
    if not measured:
        return None
    values: dict[str, object] = {}
    for field in fields(report.Measures):
        if field.name == "accounting":
            continue
        known = [value for one in measured if (value := getattr(one, field.name)) is not None]
        exact = field.name in {"pipeline_efficiency", "hidden"}
        values[field.name] = None if not known else median(known) if exact else round(median(known))
    accounting = {name: round(median(one.accounting[name] for one in measured)) for name in report.CATEGORIES}
    return report.Summary(len(measured), report.Measures(**values, accounting=accounting))  # type: ignore[arg-type]


class KernelBaseline:
    """How long each kernel takes while nothing loads: what compute inflation is measured against.

    Over all forwards of one process on one device: another process's kernels may run on another GPU, or on other data.
    """

    def __init__(self, trace: Trace, forwards: Sequence[Forward]) -> None:
        self._trace = trace
        self._loads: dict[tuple[int, int], Intervals] = {}
        self._quiet: dict[tuple[int, int], dict[tuple[int, int], tuple[float, int]]] = {}
        for key in {(forward.process, forward.device) for forward in forwards}:
            own = [forward for forward in forwards if (forward.process, forward.device) == key]
            self._loads[key] = _busy(trace, np.concatenate([one.rows(Role.LOAD) for one in own]))
            quiet = [rows[loaded == 0] for rows, loaded in map(self._kernels, own)]
            self._quiet[key] = _typical_durations(trace, np.concatenate(quiet))

    def inflation(self, forward: Forward) -> int | None:
        """Return the ns that load operations added to a forward's kernels; None where no kernel is seen both ways.

        A kernel ran under load when load operations cover more than half of it.
        """
        rows, loaded = self._kernels(forward)
        duration = self._trace.operations.end[rows] - self._trace.operations.start[rows]
        under = _typical_durations(self._trace, rows[2 * loaded > duration])
        quiet = self._quiet[forward.process, forward.device]
        known = [identity for identity in under if identity in quiet]
        if not known:
            return None
        return round(sum((under[one][0] - quiet[one][0]) * under[one][1] for one in known))

    def _kernels(self, forward: Forward) -> tuple[Ints, Ints]:
        operations = self._trace.operations
        rows = forward.rows(Role.COMPUTE)
        rows = rows[operations.kind[rows] == int(Kind.KERNEL)]
        loads = self._loads[forward.process, forward.device]
        return rows, intervals.coverage(loads, operations.start[rows], operations.end[rows])


def _typical_durations(trace: Trace, rows: Ints) -> dict[tuple[int, int], tuple[float, int]]:
    """Return, for each kernel name and launch shape among ``rows``, the median duration in ns and how many ran."""
    operations = trace.operations
    name, shape, duration = operations.name[rows], operations.shape[rows], operations.end[rows] - operations.start[rows]
    order = np.lexsort((duration, shape, name))
    name, shape, duration = name[order], shape[order], duration[order]
    first = np.flatnonzero(np.append(True, (name[1:] != name[:-1]) | (shape[1:] != shape[:-1]))[: len(order)])
    count = np.diff(first, append=len(order))
    middle = (duration[first + (count - 1) // 2] + duration[first + count // 2]) / 2
    identities = zip(name[first].tolist(), shape[first].tolist(), strict=True)
    return dict(zip(identities, zip(middle.tolist(), count.tolist(), strict=True), strict=True))


def _layers(trace: Trace, forward: Forward, accounting: Accounting, times: LayerTimes) -> tuple[report.Layer, ...]:
    """Return the layers in the order in which they compute; those that only load come last, by number."""
    first = accounting.first_of_layer
    found = []
    for layer in [*first, *(layer for layer in forward.layers if layer not in first)]:
        pieces, n_bytes = times.moved(layer) or (None, _bytes(trace, *forward.loads_of(layer)))
        found.append(
            report.Layer(
                layer=layer,
                load_busy_ns=times.busy_ns(layer, Role.LOAD),
                compute_busy_ns=times.busy_ns(layer, Role.COMPUTE),
                load_pieces=pieces,
                load_bytes=n_bytes,
                stall_ns=accounting.stall_ns.get(layer, 0),
            )
        )
    return tuple(found)


def _pieces(trace: Trace, rows: Ints) -> int | None:
    """Return how many pieces loads were copied in, None where a kernel moved them: it leaves no copies behind."""
    operations = trace.operations
    return None if (operations.kind[rows] == int(Kind.KERNEL)).any() else int(operations.pieces[rows].sum())


def _bytes(trace: Trace, rows: Ints, ranges: Ints) -> int | None:
    """Return the bytes that loads moved; those of a kernel are what its range says it moves, None where it does not."""
    operations = trace.operations
    kernels = operations.kind[rows] == int(Kind.KERNEL)
    moved = int(operations.n_bytes[rows[~kernels]].sum())
    if not kernels.any():
        return moved
    named = np.unique(ranges[kernels])
    # a number in somebody else's range may mean anything; those of this project's domain are bytes
    ours = named[0] >= 0 and {trace.names[one] for one in trace.ranges.domain[named].tolist() if one >= 0} == {DOMAIN}
    payload = trace.ranges.payload[named] if ours else np.array([-1])
    return moved + int(payload.sum()) if (payload >= 0).all() else None


def _busy(trace: Trace, rows: Ints) -> Intervals:
    return intervals.union(trace.operations.start[rows], trace.operations.end[rows])
