"""What was run where: the facts that must agree before two times can be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from traceview.analysis.compare_measures import BYTES, GPU, LAYER_BYTES, LAYERS, layer_subject
from traceview.units import size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from traceview.report import Report

SAME_BYTES = 0.01
"""Loads that differ by less are the same work: pages come and go by one."""


@dataclass(frozen=True)
class Setting:
    """What the measured forwards of a side ran on and moved; what is not known stands empty and compares equal."""

    gpus: tuple[str, ...] = ()
    """names of the devices with measured forwards, in the order of their ids; empty where the capture names none"""
    layers: frozenset[int] = frozenset()
    """how many layers a forward has"""
    load_bytes: int | None = None
    """median of a forward"""
    layer_bytes: Mapping[str, int] = field(default_factory=dict)
    """median of each layer's load"""
    first_layer: str = ""
    """the layer that computes first"""
    call_stacks: bool | None = None
    """whether call stacks were captured, which costs the host time at every call"""


def setting_of(reports: Sequence[Report]) -> Setting:
    """Return what the measured forwards of all reports of one side ran on."""
    measured = [forward for report in reports for forward in report.forwards if not forward.warmup]
    loads: dict[str, list[int]] = {}
    for forward in measured:
        for layer in forward.layers:
            if layer.load_bytes is not None:
                loads.setdefault(layer_subject(layer.layer), []).append(layer.load_bytes)
    totals = [forward.measures.load_bytes for forward in measured]
    known = [total for total in totals if total is not None]
    gpus = tuple(dict.fromkeys(_gpus(report) for report in reports))
    return Setting(
        gpus=gpus[0] if len(gpus) == 1 else tuple(name for names in gpus for name in names),
        layers=frozenset(len(forward.layers) for forward in measured),
        load_bytes=round(median(known)) if known else None,
        layer_bytes={layer: round(median(sizes)) for layer, sizes in loads.items()},
        first_layer=next((layer_subject(one.layers[0].layer) for one in measured if one.layers), ""),
        call_stacks=any("call_stacks" in report.trace.captured for report in reports),
    )


def _gpus(report: Report) -> tuple[str, ...]:
    """Return the names of the devices with measured forwards, or of all where nothing is measured."""
    used = {forward.device for forward in report.forwards if not forward.warmup}
    named = {device["id"]: str(device.get("name") or "") for device in report.trace.devices}
    return tuple(named.get(device, "") for device in sorted(used or named))


def incomparable(base: Setting, new: Setting, subject: str = "") -> Mapping[str, str]:
    """Return why sides differ in what was run, by what differs: the GPU, the layers, the bytes, the layer's bytes.

    The layer is ``subject``, or the first one for what is about no layer.
    """
    found: dict[str, str] = {}
    if _other_gpus(base.gpus, new.gpus):
        found[GPU] = f"other GPU: {_named(base.gpus)} against {_named(new.gpus)}"
    if base.layers != new.layers and base.layers and new.layers:
        found[LAYERS] = f"other layer count: {_counts(base.layers)} against {_counts(new.layers)}"
    if _other(base.load_bytes, new.load_bytes):
        found[BYTES] = f"other bytes: {size(base.load_bytes or 0)} against {size(new.load_bytes or 0)} a forward"
    layer = subject or base.first_layer
    before, after = base.layer_bytes.get(layer), new.layer_bytes.get(layer)
    if _other(before, after):
        found[LAYER_BYTES] = f"other bytes: {size(before or 0)} against {size(after or 0)} in {layer}"
    elif before is None and after is None and (BYTES in found or LAYERS in found):
        # saved runs know no bytes of layers: where the whole differs, so may its layers
        found[LAYER_BYTES] = found.get(BYTES) or found[LAYERS]
    return found


def _other_gpus(base: Sequence[str], new: Sequence[str]) -> bool:
    if not base or not new:
        return False
    return len(base) != len(new) or any(one and two and one != two for one, two in zip(base, new, strict=True))


def _other(base: int | None, new: int | None) -> bool:
    return base is not None and new is not None and abs(base - new) > SAME_BYTES * max(base, new)


def _named(gpus: Iterable[str]) -> str:
    names = [name or "unnamed" for name in gpus]
    return " + ".join(
        f"{names.count(name)} times {name}" if names.count(name) > 1 else name for name in dict.fromkeys(names)
    )


def _counts(layers: Iterable[int]) -> str:
    return " and ".join(str(number) for number in sorted(layers))
