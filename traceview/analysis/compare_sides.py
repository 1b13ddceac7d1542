"""Turns captures into the two sides of a comparison: what a sample is, and which kernels and ranges it names."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traceview.analysis.compare import Side
from traceview.analysis.compare_calls import call_samples, kernels_of, main_shapes, ranges_of
from traceview.analysis.compare_clocks import paces_of
from traceview.analysis.compare_measures import Key, Sample, sample_forwards
from traceview.analysis.compare_setting import setting_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceview.model import Trace
    from traceview.report import Report

NAMED_SHARE = 0.01
"""Kernels and ranges with a smaller share of their kind's time are not compared one by one."""

RATE_FEWEST_BYTES = 1 << 20
"""The rate of fewer bytes is that of the copies' fixed cost."""


@dataclass(frozen=True)
class Captured:
    """One file: its trace and what is reported of it."""

    trace: Trace
    report: Report

    @property
    def has_forwards(self) -> bool:
        """Return whether there is a forward that is no warm-up."""
        return any(not forward.warmup for forward in self.report.forwards)


def gather_sides(base: Sequence[Captured], new: Sequence[Captured]) -> tuple[Side, Side]:
    """Return both sides: samples are the measured forwards where every file has some, else whole files.

    Files without forwards are also compared call by call of their kernels and outermost ranges.
    """
    everything = (*base, *new)
    if all(one.has_forwards for one in everything):
        sides = [[_forward_samples(one, run) for run, one in enumerate(side)] for side in (base, new)]
    else:
        shapes = main_shapes(one.trace for one in everything)
        sides = [
            [(*_file_samples(one, run), *call_samples(one.trace, run, shapes)) for run, one in enumerate(side)]
            for side in (base, new)
        ]
    flat = [[sample for run in side for sample in run] for side in sides]
    dropped = _rare(sample for side in flat for sample in side)
    return _side(base, flat[0], dropped), _side(new, flat[1], dropped)


def _side(captures: Sequence[Captured], samples: Sequence[Sample], dropped: set[Key]) -> Side:
    kept = (
        replace(sample, values={key: value for key, value in sample.values.items() if key not in dropped})
        for sample in samples
    )
    return Side(
        paths=tuple(one.report.trace.path for one in captures),
        samples=tuple(kept),
        setting=setting_of([one.report for one in captures]),
        findings=tuple(one.report.findings for one in captures),
        paces=paces_of([(one.trace, one.report.forwards) for one in captures]),
    )


def _forward_samples(captured: Captured, run: int) -> tuple[Sample, ...]:
    """Return one sample per measured forward, with the time of each kernel and range in it."""
    report, trace = captured.report, captured.trace
    syncs = None if "api_calls" in report.trace.missing else report.syncs
    samples = sample_forwards(report.forwards, syncs, run)
    measured = [forward for forward in report.forwards if not forward.warmup]
    named = zip(kernels_of(trace, measured), ranges_of(trace, report.forwards, measured), strict=True)
    return tuple(
        replace(sample, values=dict(sample.values) | _keyed("kernel_ns", kernels) | _keyed("range_ns", ranges))
        for sample, (kernels, ranges) in zip(samples, named, strict=True)
    )


def _keyed(measure: str, values: Mapping[str, float]) -> dict[Key, float]:
    return {Key(measure, name): value for name, value in values.items()}


def _file_samples(captured: Captured, run: int) -> Iterator[Sample]:
    """Yield one sample per device of a whole file: only what does not grow with the length of the capture."""
    report, trace = captured.report, captured.trace
    devices = sorted({stream.device for stream in trace.streams})
    for ordinal, device in enumerate(devices):
        values: dict[Key, float] = {}
        pairs = (one for one in report.overlap if one.scope == "trace" and one.device == device)
        ratios = [one.ratio for one in pairs if {one.a, one.b} == {"h2d", "compute"}]
        if ratios:
            values[Key("overlap_ratio")] = max(ratios)
        loads = [group for group in report.copies if (group.device, group.direction) == (device, "h2d")]
        n_bytes, busy_ns = sum(group.n_bytes for group in loads), sum(group.busy_ns for group in loads)
        if n_bytes >= RATE_FEWEST_BYTES and busy_ns:
            values[Key("load_rate")] = n_bytes / busy_ns
        share = _busy_share(trace, device)
        if share is not None:
            values[Key("busy_share")] = share
        yield Sample(values, run, ordinal)


def _busy_share(trace: Trace, device: int) -> float | None:
    """Return the share of the time from a device's first to its last operation in which it computes."""
    from traceview import intervals
    from traceview.model import Kind

    own = trace.operation_device() == device
    operations = trace.operations.take(own)
    computes = (operations.kind == Kind.KERNEL) | (operations.kind == Kind.GRAPH)
    if not computes.any():
        return None
    busy = intervals.union(operations.start[computes], operations.end[computes]).length
    return busy / int(operations.end.max() - operations.start.min())


def _rare(samples: Iterator[Sample]) -> set[Key]:
    """Return the keys of kernels and ranges with less than a good part of their kind's time, both sides together."""
    totals: dict[Key, float] = defaultdict(float)
    for sample in samples:
        for key, value in sample.values.items():
            if key.measure.startswith(("kernel_", "range_")):
                totals[key] += value
    wholes: dict[str, float] = defaultdict(float)
    for key, total in totals.items():
        wholes[key.measure] += total
    return {key for key, total in totals.items() if total < NAMED_SHARE * wholes[key.measure]}
