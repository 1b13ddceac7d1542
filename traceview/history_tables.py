"""The tables of a file of runs: their columns, and the rows that a report becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import traceview
from traceview.analysis.compare_measures import MEASURES, sample_forwards
from traceview.analysis.compare_setting import setting_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sqlite_utils import Database

    from traceview.analysis.compare_clocks import Paces
    from traceview.report import Report

BETWEEN = " + "
"""between the names of several GPUs"""

_VIEW = (
    "SELECT runs.saved_at, runs.label, runs.commit_sha, runs.trace, measures.* FROM measures "
    "JOIN runs ON runs.id = measures.run WHERE measures.warmup = 0"
)


@dataclass(frozen=True)
class Origin:
    """Where a report comes from: what keys its run, and what is remembered beside it."""

    trace_sha256: str
    commit: str | None
    label: str
    saved_at: str
    """UTC, ISO 8601"""

    @property
    def run(self) -> str:
        """Return the key of the run: short, and the same for the same trace and commit."""
        return f"{self.trace_sha256[:16]}-{(self.commit or 'nocommit')[:12]}"


def run_row(report: Report, origin: Origin) -> dict[str, Any]:
    """Return the row of a run."""
    setting = setting_of([report])
    return {
        "id": origin.run,
        "trace_sha256": origin.trace_sha256,
        "commit_sha": origin.commit,
        "label": origin.label,
        "trace": PurePath(report.trace.path).name,
        "saved_at": origin.saved_at,
        "gpu": BETWEEN.join(setting.gpus) or None,
        "forwards": sum(not forward.warmup for forward in report.forwards),
        "layers": max(setting.layers, default=None),
        "load_bytes": setting.load_bytes,
        "product_version": report.trace.product_version,
        "traceview_version": traceview.__version__,
    }


def measure_rows(report: Report, run: str) -> Iterator[dict[str, Any]]:
    """Yield a row per forward and measure, of warm-up too."""
    syncs = None if "api_calls" in report.trace.missing else report.syncs
    for forward in report.forwards:
        (sample,) = sample_forwards([replace(forward, warmup=False)], syncs)
        place = {"run": run, "forward": forward.index, "device": forward.device}
        for key, value in sample.values.items():
            yield place | {
                "measure": key.measure,
                "subject": key.subject,
                "value": float(value),
                "unit": MEASURES[key.measure].unit,
                "warmup": int(forward.warmup),
            }


def kernel_rows(paces: Paces, run: str) -> Iterator[dict[str, Any]]:
    """Yield a row per device, counted from 0, and kernel of one launch shape: its ns in all, and a call's."""
    for device, kernels in paces.items():
        for (kernel, shape), (total_ns, call_ns) in kernels.items():
            place = {"run": run, "device": device, "kernel": kernel, "shape": shape}
            yield place | {"total_ns": total_ns, "call_ns": call_ns}


def finding_rows(report: Report, run: str) -> Iterator[dict[str, Any]]:
    """Yield a row per finding."""
    for one in report.findings:
        yield {"run": run, "finding": one.id, "severity": one.severity, "cost_ns": one.cost_ns, "share": one.share}


COLUMNS: Mapping[str, tuple[dict[str, type], str | tuple[str, ...]]] = {
    "runs": (
        {
            "id": str,
            "trace_sha256": str,
            "commit_sha": str,
            "label": str,
            "trace": str,
            "saved_at": str,
            "gpu": str,
            "forwards": int,
            "layers": int,
            "load_bytes": int,
            "product_version": str,
            "traceview_version": str,
        },
        "id",
    ),
    "measures": (
        {
            "run": str,
            "forward": int,
            "device": int,
            "measure": str,
            "subject": str,
            "value": float,
            "unit": str,
            "warmup": int,
        },
        ("run", "forward", "device", "measure", "subject"),
    ),
    "findings": (
        {"run": str, "finding": str, "severity": str, "cost_ns": int, "share": float},
        ("run", "finding"),
    ),
    "kernels": (
        {"run": str, "device": int, "kernel": str, "shape": int, "total_ns": float, "call_ns": float},
        ("run", "device", "kernel", "shape"),
    ),
}
"""Tables with their columns and primary keys."""


def create_tables(database: Database) -> None:
    """Make the tables that are missing, and the view, in a database of sqlite-utils."""
    for name, (columns, key) in COLUMNS.items():
        links = [] if name == "runs" else [("run", "runs", "id")]
        database.table(name).create(columns, pk=key, foreign_keys=links, if_not_exists=True)
    if "measured" not in database.view_names():
        database.create_view("measured", _VIEW)
