"""What each capture of ``sample_traces/`` shows, and its report beside the workload's own CUDA-event times.

``python tests/sample_truth.py`` prints the tables of ``sample_traces/README.md``; with ``--write`` it puts them there.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import checkout  # noqa: F401

import traceview
from traceview.analysis.forwards import Forward, find_forwards
from traceview.analysis.report import build_report
from traceview.analysis.roles import Role

if TYPE_CHECKING:
    from traceview import report
    from traceview.model import Trace

FOLDER = Path(__file__).parents[1] / "sample_traces"
TOLERANCE = 0.03
MEASURES = ("makespan", "first layer", "load rate")

WAITING = ("sync", "host")
"""A wait of the host costs the wait itself and the restart that it forces."""


@dataclass(frozen=True)
class Sample:
    """One capture: what was done on purpose, and the categories of the accounting of which one must lose most.

    No category: the run is healthy, and nothing is lost.
    """

    cause: str
    lost_to: tuple[str, ...] = ()


SAMPLES = {
    "healthy": Sample("nothing: pinned memory, a load stream, one event per layer"),
    "contiguous": Sample("healthy: the size of `fragmented`, each layer in one piece"),
    "healthy_40": Sample("nothing: pinned memory, a load stream, one event per layer; 40 forwards"),
    "registered": Sample("healthy: mapped memory in transparent huge pages, registered, bound to the GPU's node"),
    "batch": Sample("healthy: one `cudaMemcpyBatchAsync` per layer, 64 pieces of 4 MiB each"),
    "thread": Sample("healthy: loads submitted by another thread"),
    "graph": Sample("healthy: each layer's compute is a CUDA graph, traced as a whole"),
    "graph_nodes": Sample("healthy: the same, traced node by node"),
    "no_names": Sample("healthy: no ranges and no facts, so that layers are found by events"),
    "metrics": Sample("healthy: with GPU metrics at 10 kHz"),
    "writeback": Sample("healthy: each layer is copied back while later ones load"),
    "inbound_peer": Sample("healthy: a second GPU copies into this one over NVLink meanwhile"),
    "load_bound": Sample("compute takes half as long as loading: the link is the limit", ("load_copy",)),
    "pageable": Sample("pageable source", ("implicit_sync",)),
    "same_stream": Sample("loads on the compute stream", ("stream_queue",)),
    "small_copy_first": Sample("a small copy before each layer's compute waits behind the loads", ("engine_queue",)),
    "small_copy_first_40": Sample("the same; 40 forwards", ("engine_queue",)),
    "late_submission": Sample("2 ms of host work between the submissions of loads", ("submit",)),
    "fragmented": Sample("64 KiB pieces: 512 copies per layer", ("submit",)),
    "layer_first": Sample("shuffled pages, layer by layer: 256 copies of 256 KiB per layer", ("submit",)),
    "page_first": Sample("pages hold all layers of a token: 1,024 copies of 4 KiB per layer", ("submit",)),
    "page_first_direct": Sample("pages hold a layer's tokens together: 64 copies of 1 MiB", ("load_copy",)),
    "sm": Sample("a kernel moves the pages: slower than the copy engine, and it takes SMs", ("load_copy",)),
    "item": Sample("`.item()` after each layer", WAITING),
    "item_24_layers": Sample("`.item()` after each of 24 thin layers", WAITING),
    "item_stacks": Sample("`.item()` after each layer, captured with CUDA and Python call stacks", WAITING),
    "stream_sync": Sample("the host waits for the compute stream after each layer", WAITING),
    "event_sync": Sample("the host waits for an event after each layer", WAITING),
    "device_sync": Sample("the host waits for the whole device after each layer", WAITING),
    "alloc_free": Sample("device memory is allocated and freed after each layer", ("implicit_sync",)),
    "storage": Sample("each layer is read from a file and staged in the pool first", ("host",)),
    "storage_direct": Sample("the same with `O_DIRECT`, past the page cache", ("host",)),
}
"""Every capture of the workload, by the name of its files."""


@dataclass(frozen=True)
class Compared:
    """One measure: the report's median over the measured forwards, and that of the workload's CUDA events."""

    reported: float
    measured: float

    @property
    def difference(self) -> float:
        """Return how far the report is off, as a share."""
        return self.reported / self.measured - 1


@dataclass(frozen=True)
class Truth:
    """What a sample's report and JSON line say; times in ns, rates in GB/s.

    ``losses``: medians of the accounting without compute; of ``load_copy`` only what goes beyond the first layer's
    load, for which even the ideal pipeline waits.
    """

    line: dict[str, Any]
    trace: Trace
    made: report.Report
    compared: dict[str, Compared]
    losses: dict[str, float]

    @property
    def measures(self) -> report.Measures:
        """Return the medians of the report."""
        assert self.made.summary
        return self.made.summary.measures

    @property
    def largest_loss(self) -> str:
        """Return the category that loses most."""
        return max(self.losses, key=lambda name: self.losses[name])


@cache
def truth(name: str) -> Truth:
    """Read a sample and its JSON line, and put both side by side."""
    line = json.loads((FOLDER / f"{name}.json").read_text())
    trace = traceview.read(FOLDER / f"{name}.sqlite")
    made = build_report(trace)
    measured = [forward for forward in find_forwards(trace) if not forward.warmup]
    reported = [forward for forward in made.forwards if not forward.warmup]
    n_bytes = line["bytes"]["forward"]
    pairs = {
        "makespan": ([forward.measures.makespan_ns for forward in reported], "makespan_ns"),
        "first layer": ([forward.measures.first_layer_exposed_ns for forward in reported], "first_layer_exposed_ns"),
        "load rate": ([n_bytes / _load_span_ns(trace, forward) for forward in measured], "load_span_bytes_per_s"),
    }
    compared = {
        measure: Compared(
            median(values), median(forward[key] for forward in line["forwards"]) / (1e9 if "per_s" in key else 1)
        )
        for measure, (values, key) in pairs.items()
    }
    return Truth(line, trace, made, compared, _losses(reported))


def _load_span_ns(trace: Trace, forward: Forward) -> int:
    rows = forward.rows(Role.LOAD)
    return int(trace.operations.end[rows].max() - trace.operations.start[rows].min())


def _losses(forwards: list[report.Forward]) -> dict[str, float]:
    losses: dict[str, list[float]] = {}
    for forward in forwards:
        for category, spent in forward.measures.accounting.items():
            inherent = forward.layers[0].load_busy_ns if category == "load_copy" else 0
            if category != "compute":
                losses.setdefault(category, []).append(max(spent - inherent, 0))
    return {category: median(spent) for category, spent in losses.items()}


def commands() -> dict[str, str]:
    """Return the command that made each sample, from ``capture.sh`` with its variables filled in."""
    script = (FOLDER / "capture.sh").read_text()
    variables = dict(re.findall(r'^(\w+)="([^"$]*)"$', script, re.MULTILINE)) | {"file": "FILE"}
    found = {}
    for name, rest in re.findall(r"^ +c (\w+) (.+)$", script, re.MULTILINE):
        filled = re.sub(r'"?\$(\w+)"?', lambda match: variables[match[1]], rest)
        found[name] = f"python -m instrument capture --out RAW --name {name} {filled}"
    return found


def sha256(path: Path) -> str:
    """Return a file's SHA-256."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def tables() -> str:
    """Return the tables of the README."""
    lines = ["| sample | what was done on purpose | SQLite, SHA-256 |", "|---|---|---|"]
    for name, sample in SAMPLES.items():
        lines.append(f"| `{name}` | {sample.cause} | `{sha256(FOLDER / f'{name}.sqlite')}` |")
    lines += ["", "| sample | machine | command |", "|---|---|---|"]
    run_by = commands()
    for name in SAMPLES:
        line = truth(name).line
        machine = f"{line['machine']['gpu']}, driver {line['machine']['driver']}, nsys {line['capture']['nsys']}"
        lines.append(f"| `{name}` | {machine} | `{run_by[name]}` |")
    lines += ["", _header(), "|---|---" + "|---:|---:|---:" * 3 + "|---:|---|"]
    lines += [_row(name) for name in SAMPLES]
    return "\n".join(lines)


def _header() -> str:
    columns = [
        f"{measure}, {unit}: report | events | %" for measure, unit in zip(MEASURES, ("ms", "ms", "GB/s"), strict=True)
    ]
    return f"| sample | forwards | {' | '.join(columns)} | efficiency | largest loss, ms |"


def _row(name: str) -> str:
    found = truth(name)
    cells = []
    for measure, scale in zip(MEASURES, (1e6, 1e6, 1), strict=True):
        one = found.compared[measure]
        cells += [f"{one.reported / scale:.3f}", f"{one.measured / scale:.3f}", f"{100 * one.difference:+.1f}"]
    loss = found.largest_loss
    efficiency = found.measures.pipeline_efficiency or 0.0
    cells += [f"{100 * efficiency:.1f} %", f"`{loss}` {found.losses[loss] / 1e6:.2f}"]
    return f"| `{name}` | {len(found.line['forwards'])} | {' | '.join(cells)} |"


def readme(text: str) -> str:
    """Return the README's text with fresh tables between its markers."""
    begin, end = "<!-- tables -->\n", "<!-- end of tables -->"
    before, _, rest = text.partition(begin)
    return f"{before}{begin}\n{tables()}\n\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    path = FOLDER / "README.md"
    if "--write" in sys.argv:
        path.write_text(readme(path.read_text()))
    else:
        sys.stdout.write(tables() + "\n")
