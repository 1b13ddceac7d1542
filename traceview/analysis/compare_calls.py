"""Kernels and ranges by folded name: their time in each forward, or call by call where a trace has no forwards."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.compare_measures import Key, Sample
from traceview.analysis.compare_names import fold_kernel, fold_range, pattern_of
from traceview.model import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from traceview.model import Ints, Trace
    from traceview.report import Forward

STANDS_FOR = 0.5
"""A repeated range stands for the forward of a trace when it launches at least this share of the GPU time."""

FEWEST_REPEATS = 2


def kernels_of(trace: Trace, forwards: Sequence[Forward]) -> list[dict[str, int]]:
    """Return, for each forward, the ns of each kernel by folded name on its device between its begin and end."""
    names = _folded(trace, fold_kernel)
    operations = trace.operations
    device, process = trace.operation_device(), trace.operation_process()
    kernel = operations.kind == Kind.KERNEL
    found = []
    for forward in forwards:
        own = kernel & (device == forward.device) & (process == forward.process)
        rows = np.flatnonzero(own & (operations.start >= forward.t0_ns) & (operations.start < forward.t1_ns))
        found.append(_sums(names, operations.name[rows], operations.end[rows] - operations.start[rows]))
    return found


def ranges_of(trace: Trace, forwards: Sequence[Forward], measured: Sequence[Forward]) -> list[dict[str, int]]:
    """Return, for each measured forward, the host ns in its process's ranges by folded name.

    A range belongs to the forward that opened last before it, and to none after that forward's end.
    """
    names = _folded(trace, fold_range)
    process = np.array([thread.process for thread in trace.threads], dtype=np.int64)
    of_range = process[trace.ranges.thread] if len(trace.ranges) else np.empty(0, dtype=np.int64)
    found = []
    for forward in measured:
        opened = _opened(forward)
        later = [_opened(one) for one in forwards if one.process == forward.process and _opened(one) > opened]
        closed = min(later, default=forward.t1_ns)
        own = (of_range == forward.process) & (trace.ranges.start >= opened) & (trace.ranges.start < closed)
        rows = np.flatnonzero(own)
        found.append(_sums(names, trace.ranges.name[rows], trace.ranges.end[rows] - trace.ranges.start[rows]))
    return found


def main_shapes(traces: Iterable[Trace]) -> dict[str, int]:
    """Return, for each kernel by folded name, the launch shape that runs longest in all traces together."""
    totals: dict[tuple[str, int], int] = defaultdict(int)
    for trace in traces:
        for name, shape, duration in _kernel_calls(trace, np.arange(len(trace.operations))):
            totals[name, shape] += int(duration.sum())
    best: dict[str, int] = {}
    for (name, shape), total in totals.items():
        if name not in best or total > totals[name, best[name]]:
            best[name] = shape
    return best


def call_samples(trace: Trace, run: int, shapes: Mapping[str, int]) -> Iterator[Sample]:
    """Yield one sample per call of a kernel with its main shape, and per outermost range, in the order of their time.

    Devices, and processes for ranges, count from 0.
    """
    device = trace.operation_device()
    for ordinal, one in enumerate(np.unique(device).tolist()):
        for name, shape, durations in _kernel_calls(trace, np.flatnonzero(device == one)):
            if shapes.get(name) == shape:
                yield from (Sample({Key("kernel_call_ns", name): ns}, run, ordinal) for ns in durations.tolist())
    names = _folded(trace, fold_range)
    rows = outermost_ranges(trace)
    process = np.array([thread.process for thread in trace.threads], dtype=np.int64)[trace.ranges.thread[rows]]
    for ordinal, one in enumerate(np.unique(process).tolist()):
        for row in rows[process == one].tolist():
            key = Key("range_call_ns", names[int(trace.ranges.name[row])])
            yield Sample({key: int(trace.ranges.end[row] - trace.ranges.start[row])}, run, ordinal)


def repeated_range(traces: Sequence[Trace]) -> tuple[str, str] | None:
    """Return the range that stands for a forward in traces that have none: its folded name and an expression for it.

    That is the outermost range, by folded name, that repeats in every trace and launches at least half of the GPU
    time of each; the one that launches most. None where there is no such range.
    """
    shares = [_shares_of_ranges(trace) for trace in traces]
    common = [name for name in shares[0] if all(one.get(name, 0.0) >= STANDS_FOR for one in shares)] if shares else []
    if not common:
        return None
    best = max(common, key=lambda name: min(one[name] for one in shares))
    return best, pattern_of(best)


def outermost_ranges(trace: Trace) -> Ints:
    """Return the rows of the ranges that lie in no other range of their thread, in start order."""
    kept = []
    for thread in np.unique(trace.ranges.thread):
        own = np.flatnonzero(trace.ranges.thread == thread)
        reach = np.maximum.accumulate(trace.ranges.end[own])
        kept.append(own[np.concatenate(([True], trace.ranges.end[own][1:] > reach[:-1]))])
    return np.sort(np.concatenate(kept)) if kept else np.empty(0, dtype=np.int64)


def _shares_of_ranges(trace: Trace) -> dict[str, float]:
    """Return the share of the GPU's busy time that each repeated outermost range launches, by folded name."""
    operations, ranges = trace.operations, trace.ranges
    total = int((operations.end - operations.start).sum())
    rows, launched = outermost_ranges(trace), np.flatnonzero(operations.launch >= 0)
    if not total or not len(rows) or not len(launched):
        return {}
    call = operations.launch[launched]
    inside = np.full(len(launched), -1, dtype=np.int64)
    for thread in np.unique(ranges.thread[rows]):
        own, mine = rows[ranges.thread[rows] == thread], trace.calls.thread[call] == thread
        at = intervals.innermost(ranges.start[own], ranges.end[own], trace.calls.start[call[mine]])
        inside[mine] = np.where(at >= 0, ranges.name[own[at]], -1)
    names = _folded(trace, fold_range)
    durations = operations.end[launched] - operations.start[launched]
    repeats: dict[str, int] = defaultdict(int)
    for name in ranges.name[rows].tolist():
        repeats[names[name]] += 1
    held = _sums(names, inside[inside >= 0], durations[inside >= 0])
    return {name: ns / total for name, ns in held.items() if repeats[name] >= FEWEST_REPEATS}


def _kernel_calls(trace: Trace, rows: Ints) -> Iterator[tuple[str, int, Ints]]:
    """Yield the durations of each kernel of one folded name and launch shape, in start order."""
    operations = trace.operations
    rows = rows[operations.kind[rows] == Kind.KERNEL]
    names = _folded(trace, fold_kernel)
    groups: dict[tuple[str, int], list[Ints]] = defaultdict(list)
    for name, shape in {*zip(operations.name[rows].tolist(), operations.shape[rows].tolist(), strict=True)}:
        groups[names[name], shape].append(rows[(operations.name[rows] == name) & (operations.shape[rows] == shape)])
    for (folded, shape), parts in sorted(groups.items()):
        own = np.sort(np.concatenate(parts))
        yield folded, shape, operations.end[own] - operations.start[own]


def _folded(trace: Trace, fold: Callable[[str], str]) -> list[str]:
    """Return the folded form of every name of the trace."""
    return [fold(name) for name in trace.names]


def _sums(names: Sequence[str], index: Ints, duration: Ints) -> dict[str, int]:
    """Return the sum of durations by name."""
    found: dict[str, int] = defaultdict(int)
    for name in np.unique(index).tolist():
        found[names[name]] += int(duration[index == name].sum())
    return dict(found)


def _opened(forward: Forward) -> int:
    """Return when the forward's range opened: its lead-in before its first operation."""
    return forward.t0_ns - forward.measures.lead_in_ns
