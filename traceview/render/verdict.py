"""The first lines of a report: what the forward takes, what it could take, and where most of the difference went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.shown import shown
from traceview.render.tables import BAD, CODE, GOOD, STRONG, Line, Part, line
from traceview.report import CATEGORIES
from traceview.units import counted, duration, percent, size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.report import Finding, Forward, Measures, Report

HEALTHY_EFFICIENCY = 0.95
"""From this share of the ideal on, the order of the work is not what costs time."""

HARDLY_ANY = 0.01
"""Share of the trace's duration below which its copies are not worth hiding."""

DEVICES_SHOWN = 4
ALSO_SHOWN = 3

_SLOW_LOADS = frozenset(
    {
        "pageable_source",
        "fragmented_copies",
        "low_link_rate",
        "remote_numa",
        "sm_mover_contention",
        "inbound_contention",
        "duplex_slowdown",
    }
)
"""Findings that make loads or compute themselves slow: the ideal that is made of them says little then."""

PHRASES = {
    "compute": "the device computes",
    "load_copy": "a layer waits for its load while copies run",
    "load_gap": "a layer waits for its load, which itself pauses",
    "stream_queue": "compute queues behind other work on its own stream",
    "engine_queue": "a small copy queues behind the loads",
    "sync": "the host is inside an explicit synchronise",
    "implicit_sync": "the host is inside a call that blocks without saying so",
    "submit": "the host still submits loads",
    "host": "the host does other things: Python, launches, restarts",
    "sm_busy": "other kernels hold the SMs",
    "launch": "launch latency, event wake-up",
}
"""What each category of the accounting means, in a few words."""


def measured_forwards(report: Report) -> tuple[Forward, ...]:
    """Return the forwards that are not warm-up."""
    return tuple(forward for forward in report.forwards if not forward.warmup)


def median_forward(forwards: Sequence[Forward]) -> Forward | None:
    """Return the forward whose makespan is the lower median, so that its accounting is one that happened."""
    ordered = sorted(forwards, key=lambda forward: forward.measures.makespan_ns)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def verdict(report: Report) -> tuple[Line, ...]:
    """Return the answer in one or two lines."""
    forward = median_forward(measured_forwards(report))
    if forward is None:
        return _without_forward(report)
    measures = report.summary.measures if report.summary else forward.measures
    if report.findings:
        return _found(report.findings, measures)
    if measures.ideal_ns is None or measures.pipeline_efficiency is None or not measures.load_busy_ns:
        return _without_ideal(report, forward)
    if measures.pipeline_efficiency < HEALTHY_EFFICIENCY:
        return _lossy(measures, measures.ideal_ns, measures.pipeline_efficiency)
    return _healthy(measures, measures.ideal_ns, measures.pipeline_efficiency)


def _found(findings: Sequence[Finding], measures: Measures) -> tuple[Line, ...]:
    """Return what a forward takes and its costliest cause, then the ideal, unless the loads themselves are at fault."""
    top, others = findings[0], findings[1:]
    takes = Part(f"A forward takes {duration(measures.makespan_ns)}", BAD if top.severity == "high" else STRONG)
    cost = f"{duration(top.cost_ns)} ({percent(top.share)})"
    first = line(takes, f": {cost} is ", Part(top.id, STRONG), f", {shown(top.message, 200)}.")
    also = ", ".join(f"{one.id} {duration(one.cost_ns)}" for one in others[:ALSO_SHOWN])
    lines = [first, line(f"Also {also}.")] if also else [first]
    if measures.ideal_ns is not None and not _SLOW_LOADS.intersection(one.id for one in findings):
        share = percent(measures.pipeline_efficiency or 0.0)
        ideal = duration(measures.ideal_ns)
        lines.append(line(f"With these loads and this compute {ideal} is ideal: median efficiency {share}."))
    return tuple(lines)


def _healthy(measures: Measures, ideal_ns: int, efficiency: float) -> tuple[Line, ...]:
    reached = f": {duration(measures.makespan_ns)} a forward, {percent(efficiency)} of the ideal {duration(ideal_ns)}."
    load_busy_ns = measures.load_busy_ns or 0
    if load_busy_ns > measures.compute_busy_ns:
        loads = f"Loads take {duration(load_busy_ns)}, compute {duration(measures.compute_busy_ns)}"
        return (
            line(Part("The loads set the pace", STRONG), reached),
            line(f"{loads}: only fewer bytes or faster copies make it shorter."),
        )
    first = measures.first_layer_exposed_ns
    exposed = () if first is None else (line(f"Before anything overlaps, the first layer takes {duration(first)}."),)
    return line(Part("The load hides behind compute", GOOD), reached), *exposed


def _lossy(measures: Measures, ideal_ns: int, efficiency: float) -> tuple[Line, ...]:
    first = line(
        Part(f"A forward takes {duration(measures.makespan_ns)}", BAD),
        f" where {duration(ideal_ns)} is ideal: {percent(efficiency)} efficiency.",
    )
    unavoidable = max(0, ideal_ns - measures.compute_busy_ns)
    return first, *_largest_loss(measures, unavoidable)


def _without_ideal(report: Report, forward: Forward) -> tuple[Line, ...]:
    measures = forward.measures
    share = measures.accounting["compute"] / measures.makespan_ns if measures.makespan_ns else 0.0
    first = line(
        Part(f"A forward takes {duration(measures.makespan_ns)}", STRONG), f", {percent(share)} of it under compute."
    )
    return first, *_largest_loss(measures, 0), _missing_names(report, forward)


def _missing_names(report: Report, forward: Forward) -> Line:
    """Return what has to be named, or captured, for the measures of a load that hides."""
    if "copies" in report.trace.missing:
        lacking = line("The capture holds no copies, so nothing can be said of its loads: ")
        return (*lacking, Part("nsys profile --trace=cuda,nvtx", CODE), Part("."))
    if forward.measures.load_busy_ns is None:
        return line("Copies beside it have no launch in the capture, so nothing can be said of its loads.")
    load, compute = Part("load layer 0", CODE), Part("compute layer 0", CODE)
    if forward.layers:
        return line("No load was found in it, so none can hide: put a range ", load, " around what submits each.")
    return line("It has no layers: for ideal and efficiency put ", load, " and ", compute, " around what submits them.")


def _largest_loss(measures: Measures, unavoidable_ns: int) -> tuple[Line, ...]:
    """Return a line on the category that costs most, after what even the ideal forward waits for its loads."""
    losses = _avoidable(measures.accounting, unavoidable_ns)
    worst = max(losses, key=lambda category: losses[category])
    if losses[worst] <= 0 or not measures.makespan_ns:
        return ()
    cost = measures.accounting[worst]
    share = percent(cost / measures.makespan_ns)
    return (line("Largest loss: ", Part(worst, worst), f", {duration(cost)} ({share}): {PHRASES[worst]}."),)


def _avoidable(accounting: Mapping[str, int], unavoidable_ns: int) -> dict[str, int]:
    losses = {category: accounting[category] for category in CATEGORIES if category != "compute"}
    for category in ("load_copy", "load_gap"):
        spared = min(unavoidable_ns, losses[category])
        losses[category] -= spared
        unavoidable_ns -= spared
    return losses


def _without_forward(report: Report) -> tuple[Line, ...]:
    if report.forwards:
        many = len(report.forwards)
        only = f"All {many} forwards are warm-up" if many > 1 else "The only forward is warm-up"
        return (line(Part(f"{only}: nothing is measured.", BAD), " To measure it use ", Part("--warmup 0", CODE), "."),)
    if not report.overlap and not report.copies and not report.syncs:
        return (line(Part("Nothing to judge: this trace holds no work on a GPU and no blocking call.", BAD)),)
    first = line(Part("No forward in this trace", STRONG), ": makespan, layers, losses and efficiency cannot be told.")
    return *_costliest(report.findings), first, _what_forwards_need(report), *_uncovered(report)


def _what_forwards_need(report: Report) -> Line:
    """Return what is to be captured or named for forwards to be found."""
    lacking = [what for what in ("kernels", "api_calls") if what in report.trace.missing]
    if lacking:
        words = " and no ".join(what.replace("_", " ").replace("api", "API") for what in lacking)
        traced = Part("nsys profile --trace=cuda,nvtx", CODE)
        return line(f"It holds no {words}: none happened, or they were not captured with ", traced, ".")
    return line(
        "They need a range ",
        Part("forward 0", CODE),
        " around each pass, with ",
        Part("load layer 0", CODE),
        " and ",
        Part("compute layer 0", CODE),
        " inside, or ",
        Part("--forward-range RE", CODE),
        ".",
    )


def _costliest(findings: Sequence[Finding]) -> tuple[Line, ...]:
    """Return a line on the finding that costs most where only geometry tells of costs."""
    if not findings:
        return ()
    top = findings[0]
    cost = f"{duration(top.cost_ns)}, {percent(top.share)} of the time on the GPU, is "
    role = BAD if top.severity == "high" else STRONG
    return (line(Part("Costliest: ", role), cost, Part(top.id, STRONG), f": {shown(top.message, 200)}."),)


def _uncovered(report: Report) -> tuple[Line, ...]:
    """Return one line per device on how much of the host-to-device copy time compute covers."""
    lines = []
    for pair in report.overlap:
        if pair.scope != "trace" or {pair.a, pair.b} != {"h2d", "compute"}:
            continue
        busy = pair.busy_a_ns if pair.a == "h2d" else pair.busy_b_ns
        loads = (group for group in report.copies if group.direction == "h2d")
        place = f"{pair.process}/{pair.device}/"
        moved = sum(group.n_bytes for group in loads if group.stream.startswith(place))
        process = f" of process {pair.process}" if len(report.trace.processes) > 1 else ""
        covered = percent(pair.overlap_ns / busy) if busy else "nothing"
        where = f"GPU {pair.device}{process}"
        if busy < HARDLY_ANY * report.trace.duration_ns:
            lines.append(
                line(f"{where}: only {size(moved)} copied host to device, in {duration(busy)}: hardly any to hide.")
            )
            continue
        lines.append(
            line(
                f"{where}: {size(moved)} copied host to device in {duration(busy)}, ",
                Part(covered, STRONG),
                " of that time under compute.",
            )
        )
    more = len(lines) - DEVICES_SHOWN
    return (*lines[:DEVICES_SHOWN], *((line(f"and {counted(more, 'more GPU')}"),) if more > 0 else ()))
