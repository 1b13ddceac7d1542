"""Planted causes against found ones, over the captures of ``sample_traces/``.

``python tests/confusion.py`` prints the table of the README; with ``--write`` it puts it there.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path

import checkout  # noqa: F401

import traceview
from traceview.analysis.report import build_report

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "sample_traces"
NONE = "none"

PLANTED = {
    "alloc_free": "implicit_sync",
    "batch": NONE,
    "contiguous": NONE,
    "device_sync": "accidental_sync",
    "event_sync": "accidental_sync",
    "fragmented": "fragmented_copies",
    "graph": NONE,
    "graph_nodes": NONE,
    "healthy": NONE,
    "healthy_40": NONE,
    "inbound_peer": NONE,
    "item": "scalar_readback",
    "item_24_layers": "scalar_readback",
    "item_stacks": "scalar_readback",
    "late_submission": "late_submission",
    "layer_first": "fragmented_copies",
    "load_bound": "load_bound",
    "metrics": NONE,
    "no_names": NONE,
    "page_first": "fragmented_copies",
    "page_first_direct": "fragmented_copies",
    "pageable": "pageable_source",
    "registered": NONE,
    "same_stream": "same_stream",
    "sm": "load_bound",
    "small_copy_first": "head_of_line",
    "small_copy_first_40": "head_of_line",
    "storage": "host_bound",
    "storage_direct": "host_bound",
    "stream_sync": "accidental_sync",
    "thread": NONE,
    "writeback": NONE,
}
"""The cause of each capture. ``sm`` is bound by its slow mover first; ``storage`` keeps the host busy with reading."""


@cache
def found_first(name: str) -> str:
    """Return the costliest finding of a sample, ``none`` where it has none."""
    findings = build_report(traceview.read(FOLDER / f"{name}.sqlite")).findings
    return findings[0].id if findings else NONE


def table() -> str:
    """Return the confusion matrix as a Markdown table: a row per planted cause, a column per cause found first."""
    counted = Counter((planted, found_first(name)) for name, planted in PLANTED.items())
    causes = [NONE, *sorted({cause for pair in counted for cause in pair} - {NONE})]
    lines = ["| planted \\ found first | " + " | ".join(causes) + " |", "|---|" + "---:|" * len(causes)]
    for planted in causes:
        cells = (str(counted[planted, found] or "") for found in causes)
        lines.append(f"| {planted} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def readme(text: str) -> str:
    """Return the README with the table in its place."""
    before, _, rest = text.partition("<!-- confusion -->")
    _, _, after = rest.partition("<!-- end -->")
    return f"{before}<!-- confusion -->\n{table()}\n<!-- end -->{after}"


if __name__ == "__main__":
    path = ROOT / "README.md"
    if "--write" in sys.argv:
        path.write_text(readme(path.read_text()))
    else:
        sys.stdout.write(table() + "\n")
