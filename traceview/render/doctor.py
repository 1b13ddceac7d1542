"""Lays out what a trace can answer as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.shown import shown
from traceview.units import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.model import Trace
    from traceview.report import Abstention


def render(trace: Trace, answered: Sequence[str], abstained: Sequence[Abstention]) -> str:
    """Return a block of lines: what the file is, then a line per measure with the reason and the remedy."""
    capture = trace.capture
    devices = ", ".join(f"GPU {device} {name or 'unnamed'}" for device, name in capture.devices.items()) or "none"
    lines = [
        f"{shown(str(capture.path))}",
        f"  nsys {shown(capture.product_version or 'unknown')}, schema {shown(capture.schema_version or 'none')}, "
        f"{shown(devices)}",
        f"  {counted(len(trace.operations), 'operation')}, {counted(len(trace.calls), 'API call')}, "
        f"{counted(len(trace.ranges), 'range')}, {counted(len(capture.processes), 'process', 'processes')}",
        "",
    ]
    lines += [f"  yes  {measure}" for measure in answered]
    for one in abstained:
        lines += [f"  no   {one.measure}", f"       {shown(one.reason)}", f"       → {shown(one.fix)}"]
    return "\n".join(lines) + "\n"
