"""Puts the answers of all analyses into one report."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traceview import report
from traceview.analysis.accounting import account
from traceview.analysis.busy import Busy
from traceview.analysis.case import Thresholds
from traceview.analysis.copies import measure_copies, measure_migrations
from traceview.analysis.doctor import NAMING_FIX, abstentions
from traceview.analysis.findings import Measured, find_causes
from traceview.analysis.forwards import ForwardOptions, find_forwards
from traceview.analysis.inbound import measure_inbound
from traceview.analysis.lanes import measure_lanes
from traceview.analysis.links import degraded_link
from traceview.analysis.measures import KernelBaseline, measure, summarise
from traceview.analysis.network import measure_network
from traceview.analysis.overlap import measure_overlap
from traceview.analysis.storage import measure_storage
from traceview.analysis.syncs import find_blocking_calls, list_syncs
from traceview.analysis.traffic import MachineOptions, find_traffic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.model import Trace


@dataclass(frozen=True)
class ReportOptions:
    """What a report takes beside the trace."""

    forwards: ForwardOptions = field(default_factory=ForwardOptions)
    allow_sync: str | None = None
    """expression for ranges in which blocking calls are meant"""
    thresholds: Thresholds = field(default_factory=Thresholds)
    machine: MachineOptions = field(default_factory=MachineOptions)
    what_if: tuple[str, ...] = ()
    """causes to mend in a replay of each forward, of ``traceview.analysis.whatif.EDITS``"""


def build_report(trace: Trace, options: ReportOptions | None = None) -> report.Report:
    """Return everything that can be said about a trace, and what cannot be judged with the reason and the remedy."""
    options = options or ReportOptions()
    busy = Busy(trace)
    found = find_forwards(trace, options.forwards)
    # what looks at all copies goes on beside the forwards: the long steps of numpy let other threads run
    with ThreadPoolExecutor(1) as beside:
        copies = beside.submit(measure_copies, trace)
        transfers = beside.submit(find_traffic, trace, found, options.machine, options.forwards.mover_kernel)
        rates = beside.submit(lambda: measure_lanes(transfers.result()))
        accountings = [account(trace, forward, busy) for forward in found]
        baseline = KernelBaseline(trace, found)
        forwards = tuple(
            measure(trace, forward, accounting, baseline)
            for forward, accounting in zip(found, accountings, strict=True)
        )
        overlaps = beside.submit(measure_overlap, trace, forwards)
        blocking = find_blocking_calls(trace, found, accountings, options.allow_sync, busy)
        traffic, lanes = transfers.result(), rates.result()
        machine = options.machine
        known = Measured(
            found, accountings, forwards, blocking, lanes, traffic, machine.link, machine.topology, options.thresholds
        )
        causes = find_causes(trace, known)
        overlap, exposed = overlaps.result()
    return report.Report(
        trace=describe(trace),
        forwards=forwards,
        summary=summarise(forwards),
        overlap=overlap,
        exposed_copy=exposed,
        copies=copies.result(),
        migrations=measure_migrations(trace),
        syncs=list_syncs(trace, blocking),
        lanes=lanes,
        findings=causes,
        abstained=(*abstentions(trace, found, options.machine, traffic), *_unpredicted(options.what_if, forwards)),
        storage=measure_storage(trace, found),
        inbound=measure_inbound(trace, forwards, traffic, options.machine.link),
        network=measure_network(trace),
        what_if=_predict(trace, known, options.what_if),
    )


def _predict(trace: Trace, known: Measured, edits: tuple[str, ...]) -> tuple[report.WhatIf, ...]:
    if not edits:
        return ()
    from traceview.analysis.whatif import predict  # which most reports do without

    return predict(trace, known, edits)


def _unpredicted(edits: tuple[str, ...], forwards: Sequence[report.Forward]) -> Iterator[report.Abstention]:
    """Yield why edits that were asked for have no prediction at all."""
    if edits and all(forward.warmup for forward in forwards):
        reason = "all forwards are warm-up" if forwards else "no forward was found, and only forwards are replayed"
        yield report.Abstention("what if", reason, "--warmup 0" if forwards else NAMING_FIX)


def describe(trace: Trace) -> report.TraceInfo:
    """Return what the file says about itself."""
    capture = trace.capture
    return report.TraceInfo(
        path=str(capture.path),
        product_version=capture.product_version,
        schema_version=capture.schema_version,
        start_ns=trace.start_ns,
        duration_ns=trace.end_ns - trace.start_ns,
        devices=tuple({"id": device, "name": name} for device, name in capture.devices.items()),
        processes=capture.processes,
        captured=tuple(content.value for content in capture.captured),
        missing=tuple(content.value for content in capture.missing),
        facts=capture.facts,
        diagnostics=capture.diagnostics,
        degraded={str(device): told for device in capture.devices if (told := degraded_link(capture.facts, device))},
    )
