"""Lays a report out as a page: the verdict, what was looked at, what was found, then the details."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import TYPE_CHECKING

from traceview.render.layout_checklist import checklist_section
from traceview.render.layout_copies import copies_section, migrations_section
from traceview.render.layout_forward import forward_section, layers_section
from traceview.render.layout_lanes import inbound_section, lanes_section, network_section, storage_section
from traceview.render.layout_overlap import overlap_section
from traceview.render.layout_syncs import accidental_lines, syncs_section
from traceview.render.layout_whatif import what_if_section
from traceview.render.shown import shown
from traceview.render.tables import BAD, MUTED, STRONG, Entry, Line, Page, Part, Section, line, name
from traceview.render.verdict import measured_forwards, verdict
from traceview.units import counted, duration, percent

if TYPE_CHECKING:
    from traceview.report import Abstention, Finding, Report, TraceInfo

DEVICES_SHOWN = 4
DIAGNOSTICS_SHOWN = 3
EVIDENCE_SHOWN = 5


def layout(report: Report) -> Page:
    """Return the report as a page for any format; what has nothing to say is no section."""
    sections = (
        *_findings(report),
        *what_if_section(report),
        *checklist_section(report),
        *forward_section(report),
        *layers_section(report),
        *overlap_section(report),
        *copies_section(report),
        *migrations_section(report),
        *syncs_section(report),
        *lanes_section(report),
        *storage_section(report),
        *inbound_section(report),
        *network_section(report),
        *_facts(report.trace),
        *_abstained(report),
    )
    accidental = () if report.findings else accidental_lines(report)
    return Page((*verdict(report), *accidental), (*_capture(report.trace), _forwards(report)), sections)


def _capture(trace: TraceInfo) -> tuple[Line, ...]:
    product = f"nsys {shown(trace.product_version, 40)}" if trace.product_version else "nsys version unknown"
    schema = f"schema {shown(trace.schema_version, 20)}" if trace.schema_version else "no schema version"
    lines = [
        line(name(PurePath(trace.path).name, 60), f" · {_devices(trace)}"),
        line(f"{product}, {schema} · {_span(trace)}"),
    ]
    slow = ((device, told) for device, told in trace.degraded.items())
    lines += [line(Part(f"The link of GPU {device} is degraded: ", BAD), f"{told}.") for device, told in slow]
    warned = Part("The profiler warned: ", BAD)
    lines += [line(warned, shown(problem, 200)) for problem in trace.diagnostics[:DIAGNOSTICS_SHOWN]]
    more = len(trace.diagnostics) - DIAGNOSTICS_SHOWN
    if more > 0:
        lines.append(line(Part(f"and {counted(more, 'more warning')} of the profiler, with --format json", MUTED)))
    return tuple(lines)


def _span(trace: TraceInfo) -> str:
    return f"{duration(trace.duration_ns)} captured, {counted(len(trace.processes), 'process', 'processes')}"


def _devices(trace: TraceInfo) -> str:
    if not trace.devices:
        return "no GPU named"
    named = [f"GPU {device['id']}: {shown(str(device.get('name') or 'unnamed'), 30)}" for device in trace.devices]
    more = f", {len(named) - DEVICES_SHOWN} more" if len(named) > DEVICES_SHOWN else ""
    return ", ".join(named[:DEVICES_SHOWN]) + more


def _forwards(report: Report) -> Line:
    measured = measured_forwards(report)
    warmup = len(report.forwards) - len(measured)
    if not report.forwards:
        return line("No forwards")
    sources = {"nvtx": "NVTX names", "nvtx+events": "names and events", "events": "events", None: "nothing: no layers"}
    found = sorted({sources.get(forward.layers_from, str(forward.layers_from)) for forward in measured})
    layers = sorted({len(forward.layers) for forward in measured})
    many = " or ".join(str(number) for number in layers if number)
    plural = "layer" if layers == [1] else "layers"
    named = f", {many} {plural} by {' or '.join(found)}" if many else ", without layers"
    return line(
        f"{counted(len(measured), 'forward')} measured{named if measured else ''}, {warmup} left out as warm-up"
    )


def _findings(report: Report) -> tuple[Section, ...]:
    if not report.findings:
        return ()
    return (Section("Findings", "", tuple(_finding(finding) for finding in report.findings), detail=False),)


def _finding(finding: Finding) -> Entry:
    role = BAD if finding.severity == "high" else STRONG
    basis = ", from geometry" if finding.basis == "geometric" else ""
    cost = f"  {duration(finding.cost_ns)} ({percent(finding.share)}{basis}), {finding.severity}"
    evidence = (line(Part(shown(entry, 400), MUTED)) for entry in finding.evidence[:EVIDENCE_SHOWN])
    message, advice = shown(finding.message, 400), shown(finding.advice, 400)
    return Entry(line(Part(finding.id, role), cost), (line(message), *evidence, line(Part("→ ", MUTED), advice)))


def _facts(trace: TraceInfo) -> tuple[Section, ...]:
    if not trace.facts:
        return ()
    lines = tuple(
        line(Part(f"{shown(key, 40)}: ", MUTED), shown(_written(value), 160)) for key, value in trace.facts.items()
    )
    return (Section("Facts", "as the captured process recorded them", lines),)


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)


def _abstained(report: Report) -> tuple[Section, ...]:
    if not report.abstained:
        return ()
    return (Section("Not judged", "and what would tell", tuple(_abstention(entry) for entry in report.abstained)),)


def _abstention(entry: Abstention) -> Entry:
    fix = (line(Part("→ ", MUTED), shown(entry.fix, 300)),) if entry.fix else ()
    return Entry(line(Part(shown(entry.measure, 60), STRONG), f": {shown(entry.reason, 300)}"), fix)
