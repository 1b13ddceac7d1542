"""Lays out what a trace can answer as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.shown import shown

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
        f"  {len(trace.operations):,} operations, {len(trace.calls):,} API calls, {len(trace.ranges):,} ranges, "
        f"{len(capture.processes)} {'process' if len(capture.processes) == 1 else 'processes'}",
        "",
    ]
    lines += [f"  yes  {measure}" for measure in answered]
    for one in abstained:
        lines += [f"  no   {one.measure}", f"       {shown(one.reason)}", f"       → {shown(one.fix)}"]
    return "\n".join(lines) + "\n"
