"""What two traces are compared on: each measure with its unit, its good direction and what makes it comparable."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, NamedTuple

from traceview.report import CATEGORIES, Measures

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from traceview.report import Forward, Sync

GPU, LAYERS, BYTES, LAYER_BYTES = "gpu", "layers", "bytes", "layer_bytes"
_WORK = (GPU, LAYERS, BYTES)
_LAYER_WORK = (GPU, LAYER_BYTES)


@dataclass(frozen=True)
class Measure:
    """Something that is compared; its name is its key in JSON."""

    name: str
    title: str
    unit: str
    """``ns``, ``count``, ``ratio`` or ``rate`` (bytes per ns)"""
    needs: tuple[str, ...] = _WORK
    """what must agree on both sides: GPU, number of layers, bytes of a forward, bytes of the layer (or the first)"""
    higher_is_better: bool = False
    part: bool = False
    """a part of the makespan: what counts as a change is a share of the makespan, not of the part"""
    excused: bool = False
    """more of it is no regression where the makespan itself has improved: something else was paid for with it"""
    detail: bool = False
    """explains, and never makes a regression by itself"""
    paced: str = ""
    """the measure of the compute that it holds, which goes with the GPU's clocks"""
    floor: float | None = None
    """differences below it say nothing whatever the median; None: that of its unit"""


def _part(name: str, title: str, needs: tuple[str, ...] = _WORK) -> Measure:
    return Measure(name, title, "ns", needs, part=True, excused=True)


_FORWARD = (
    Measure("makespan_ns", "makespan", "ns", paced="compute"),
    Measure("first_layer_exposed_ns", "first layer exposed", "ns", (GPU, LAYER_BYTES)),
    _part("exposed_load_ns", "exposed load"),
    _part("exposed_load_later_ns", "exposed load later"),
    Measure("pipeline_efficiency", "pipeline efficiency", "ratio", higher_is_better=True, excused=True),
    Measure("overlap_ratio", "load/compute overlap", "ratio", higher_is_better=True, excused=True),
    Measure("load_rate", "load rate", "rate", (GPU,), higher_is_better=True, excused=True),
    Measure("load_busy_ns", "load busy", "ns", excused=True),
    Measure("compute_busy_ns", "compute busy", "ns", excused=True, paced="compute_busy_ns"),
    Measure("load_pieces", "load pieces", "count", (LAYERS, BYTES)),
    Measure("accidental_calls", "accidental calls", "count", (LAYERS,)),
    _part("sync_cost_ns", "cost of blocking calls"),
)
_ACCOUNTING = tuple(replace(_part(name, name), paced=name if name == "compute" else "") for name in CATEGORIES)
_LAYER = (
    Measure("layer_load_busy_ns", "load", "ns", _LAYER_WORK, excused=True),
    Measure("layer_compute_busy_ns", "compute", "ns", _LAYER_WORK, excused=True, paced="layer_compute_busy_ns"),
    _part("layer_stall_ns", "stall", _LAYER_WORK),
    Measure("layer_load_pieces", "load pieces", "count", (LAYER_BYTES,)),
)
_NAMED = (
    Measure("kernel_ns", "a forward", "ns", part=True, detail=True),
    Measure("kernel_call_ns", "a call", "ns", (GPU,), detail=True, floor=100),
    Measure("range_ns", "a forward", "ns", part=True, detail=True),
    Measure("range_call_ns", "a call", "ns", (GPU,), detail=True),
)
_WHOLE = (Measure("busy_share", "time under compute", "ratio", (GPU,), higher_is_better=True),)

MEASURES = {measure.name: measure for measure in (*_FORWARD, *_ACCOUNTING, *_LAYER, *_WHOLE, *_NAMED)}
"""All measures by name, in the order in which they are listed."""

FORWARD_MEASURES = tuple(measure.name for measure in (*_FORWARD, *_ACCOUNTING))
"""Names of the measures of a whole forward."""

LAYER_MEASURES = tuple(measure.name for measure in _LAYER)


class Key(NamedTuple):
    """What one row of a comparison is about: a measure, of one layer, kernel or range where it has a subject."""

    measure: str
    subject: str = ""
    """``layer 3``, the folded name of a kernel or range, or nothing"""


@dataclass(frozen=True)
class Sample:
    """One forward (or what stands for one) as values by key; times in ns, rates in bytes per ns."""

    values: Mapping[Key, float]
    run: int = 0
    """which of its side's files it comes from"""
    device: int = 0
    """which of its trace's devices it ran on, counted from 0"""


def sample_forwards(
    forwards: Iterable[Forward], syncs: Iterable[Sync] | None = None, run: int = 0
) -> tuple[Sample, ...]:
    """Return one sample per forward that is no warm-up; without ``syncs`` the measures of blocking calls are absent."""
    calls, costs = _blocking(syncs) if syncs is not None else (None, None)
    measured = [forward for forward in forwards if not forward.warmup]
    devices = sorted({forward.device for forward in measured})
    samples = []
    for forward in measured:
        values = _values_of_forward(forward)
        if calls is not None and costs is not None:
            values[Key("accidental_calls")] = calls[forward.index]
            values[Key("sync_cost_ns")] = costs[forward.index]
        samples.append(Sample(values | _values_of_layers(forward), run, devices.index(forward.device)))
    return tuple(samples)


def _blocking(syncs: Iterable[Sync]) -> tuple[Mapping[int, int], Mapping[int, int]]:
    """Return the accidental calls and the cost of all blocking calls by forward."""
    calls: dict[int, int] = defaultdict(int)
    costs: dict[int, int] = defaultdict(int)
    for sync in syncs:
        if sync.forward is not None:
            calls[sync.forward] += sync.count if sync.accidental else 0
            costs[sync.forward] += sync.cost_ns or 0
    return calls, costs


def _values_of_forward(forward: Forward) -> dict[Key, float]:
    measures = forward.measures
    values: dict[Key, float] = {}
    for field in fields(Measures):
        value = getattr(measures, field.name)
        if field.name in MEASURES and value is not None:
            values[Key(field.name)] = value
    shorter = min(measures.load_busy_ns or 0, measures.compute_busy_ns)
    if shorter and measures.overlap_ns is not None:
        values[Key("overlap_ratio")] = measures.overlap_ns / shorter
    if measures.load_busy_ns and measures.load_bytes:
        values[Key("load_rate")] = measures.load_bytes / measures.load_busy_ns
    return values | {Key(name): measures.accounting[name] for name in CATEGORIES}


def _values_of_layers(forward: Forward) -> dict[Key, float]:
    values: dict[Key, float] = {}
    for layer in forward.layers:
        subject = layer_subject(layer.layer)
        if layer.load_busy_ns is not None:
            values[Key("layer_load_busy_ns", subject)] = layer.load_busy_ns
        values[Key("layer_compute_busy_ns", subject)] = layer.compute_busy_ns
        values[Key("layer_stall_ns", subject)] = layer.stall_ns
        if layer.load_pieces is not None:
            values[Key("layer_load_pieces", subject)] = layer.load_pieces
    return values


def layer_subject(layer: int | str) -> str:
    """Return how a layer is called in a key."""
    return f"layer {layer}"
