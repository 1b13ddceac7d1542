"""By how much a GPU's own pace differs between two sides: the same kernels with the same launch shape, undisturbed.

A GPU's clocks follow its power and heat: on the H200s of the samples the same kernel takes up to 15 % longer a few tens
of milliseconds later. The forwards of one capture share a pace, so however little they scatter, their distance from
those of another capture says nothing of the program as far as it is that of the same kernels.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.compare_names import fold_kernel
from traceview.model import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.model import Flags, Trace
    from traceview.report import Forward

MOST = 0.2
"""A difference beyond this share is not put down to clocks: an H200 sustains 1.6 to 1.98 GHz, a fifth apart."""

_DISTURBED = 0.02
"""A kernel of which other kernels cover more than this share may be slow because of them."""

_REPRESENTS = 0.5
"""The same kernels have to take at least this share of each side's kernel time."""

_LONG = 0.1
"""Share of that time from which on a kernel has to move the way that all of them do"""

Paces = dict[int, dict[tuple[str, int], tuple[float, float]]]
"""By device (counted from 0), then by a kernel's folded name and launch shape: its ns in all, the median of a call."""


def paces_of(captures: Sequence[tuple[Trace, Sequence[Forward]]]) -> Paces:
    """Return how long each kernel takes in the measured forwards of all captures of a side, where none disturbs it."""
    calls: dict[int, dict[tuple[str, int], list[int]]] = {}
    for trace, forwards in captures:
        measured = [forward for forward in forwards if not forward.warmup]
        for ordinal, device in enumerate(sorted({forward.device for forward in measured})):
            own = calls.setdefault(ordinal, defaultdict(list))
            _collect(trace, [forward for forward in measured if forward.device == device], own)
    return {
        device: {kernel: (float(sum(ns)), float(np.median(ns))) for kernel, ns in kernels.items()}
        for device, kernels in calls.items()
    }


def pace_change(
    base: Mapping[tuple[str, int], tuple[float, float]], new: Mapping[tuple[str, int], tuple[float, float]]
) -> float:
    """Return by which share the same kernels take longer on the new side (negative: shorter).

    0 where the same kernels are not most of the work, do not all move alike, or move more than clocks can.
    """
    common = base.keys() & new.keys()
    totals = [sum(ns for ns, _ in side.values()) for side in (base, new)]
    held = [sum(side[kernel][0] for kernel in common) for side in (base, new)]
    if not common or any(part < _REPRESENTS * total for part, total in zip(held, totals, strict=True)):
        return 0.0
    calls = {kernel: base[kernel][0] / base[kernel][1] for kernel in common if base[kernel][1]}
    before = sum(count * base[kernel][1] for kernel, count in calls.items())
    after = sum(count * new[kernel][1] for kernel, count in calls.items())
    change = after / before - 1 if before else 0.0
    long = [kernel for kernel in calls if base[kernel][0] >= _LONG * held[0]]
    alike = all((new[kernel][1] > base[kernel][1]) == (change > 0) for kernel in long)
    return change if alike and abs(change) <= MOST else 0.0


def _collect(trace: Trace, forwards: Sequence[Forward], calls: dict[tuple[str, int], list[int]]) -> None:
    """Add the duration of every undisturbed kernel of some forwards of one device."""
    operations = trace.operations
    kernels = (operations.kind == Kind.KERNEL) & (trace.operation_device() == forwards[0].device)
    inside = np.zeros(len(operations), dtype=bool)
    for forward in forwards:
        inside |= (operations.start >= forward.t0_ns) & (operations.start < forward.t1_ns)
    rows = np.flatnonzero(kernels & inside & _undisturbed(trace, kernels))
    durations = operations.end[rows] - operations.start[rows]
    names = {index: fold_kernel(trace.names[index]) for index in np.unique(operations.name[rows]).tolist()}
    for name, shape, ns in zip(
        operations.name[rows].tolist(), operations.shape[rows].tolist(), durations.tolist(), strict=True
    ):
        calls[names[name], shape].append(ns)


def _undisturbed(trace: Trace, kernels: Flags) -> Flags:
    """Return which kernels hardly overlap the one that started before or after, or any earlier one."""
    rows = np.flatnonzero(kernels)
    rows = rows[np.argsort(trace.operations.start[rows], kind="stable")]
    start, end = trace.operations.start[rows], trace.operations.end[rows]
    covered = np.zeros(len(rows), dtype=np.int64)
    covered[1:] += np.maximum(np.maximum.accumulate(end)[:-1] - start[1:], 0)
    covered[:-1] += np.maximum(end[:-1] - start[1:], 0)
    result = np.zeros(len(kernels), dtype=bool)
    result[rows] = covered <= _DISTURBED * (end - start)
    return result
