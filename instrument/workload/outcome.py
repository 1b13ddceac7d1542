"""What a run leaves behind: its JSON line, and a few lines for people."""

from __future__ import annotations

import platform
import re
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from instrument.workload.plan import pieces

if TYPE_CHECKING:
    from instrument.workload.bench import Bench
    from instrument.workload.options import Options

SCHEMA = "traceview.run/1"
"""Names the layout of the JSON line."""


def describe_run(
    options: Options, bench: Bench, facts: dict[str, Any], forwards: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return the JSON line as plain values, without the verification: sizes in bytes, times in ns, rates in bytes/s.

    ``facts`` are those of `instrument.facts`, with the node that the pool was bound to.
    """
    sizes = pieces(options.shape, 0)[:, 2]
    return {
        "schema": SCHEMA,
        "parameters": options.parameters(),
        "machine": machine(facts),
        "bound_to_node": facts["bound_to_node"],
        "host_buffers": facts["host_buffers"],
        "bytes": {
            "layer": options.shape.layer_bytes,
            "forward": options.shape.pool_bytes,
            "pieces_per_layer": len(sizes),
            "smallest_piece": int(sizes.min()),
            "largest_piece": int(sizes.max()),
        },
        "plain_copy": asdict(bench.plain),
        "compute": {**asdict(bench.size), "target_ns": bench.target_ns},
        "forwards": forwards,
    }


def machine(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the names of what the run ran on; the driver's version is None where it cannot be read."""
    import torch

    processor = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return {
        "gpu": torch.cuda.get_device_name(),
        "driver": facts.get("driver_version"),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "processor": processor[1] if processor else platform.machine(),
    }


def summary(line: dict[str, Any]) -> str:
    """Return what a run measured as a few lines for people: medians over the measured forwards."""

    def middle(key: str) -> float:
        return float(median(forward[key] for forward in line["forwards"]))

    rate, plain = middle("load_span_bytes_per_s") / 1e9, line["plain_copy"]["bytes_per_s"] / 1e9
    sizes = line["bytes"]
    checks = line["verification"] + line.get("writeback_verification", [])
    wrong = sum(check["wrong_bytes"] for check in checks)
    return "\n".join(
        [
            f"{line['machine']['gpu']}: {len(line['forwards'])} forwards of {sizes['forward'] / 2**20:,.0f} MiB "
            f"in {sizes['pieces_per_layer']:,} pieces per layer",
            f"makespan {middle('makespan_ns') / 1e6:.3f} ms, "
            f"first layer waited {middle('first_layer_exposed_ns') / 1e6:.3f} ms",
            f"load {rate:.1f} GB/s over its span, a plain copy {plain:.1f} GB/s",
            f"data: {wrong:,} bytes wrong" if wrong else "data: every byte on the device is right",
        ]
    )
