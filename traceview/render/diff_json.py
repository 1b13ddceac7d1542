"""A comparison as JSON: ``traceview.diff/1``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from traceview.analysis.compare_measures import MEASURES

if TYPE_CHECKING:
    from traceview.analysis.compare import Comparison, Row, Side
    from traceview.analysis.statistics import Spread

SCHEMA = "traceview.diff/1"


def render(comparison: Comparison, *, only_changed: bool = False) -> str:
    """Return a comparison as one strict JSON object in ASCII."""
    return json.dumps(as_dict(comparison, only_changed=only_changed), indent=2, allow_nan=False) + "\n"


def as_dict(comparison: Comparison, *, only_changed: bool = False) -> dict[str, Any]:
    """Return a comparison as plain values.

    Times are ns, rates GB/s, ratios shares of 1; ``interval`` is that of ``difference`` in the same unit. A side is
    null where it lacks the measure, ``p`` where nothing was tested. ``explained`` is how much of the difference is put
    down to the GPU's clocks.
    """
    rows = [row for row in comparison.rows if not only_changed or row.verdict in ("improved", "regressed")]
    return {
        "schema": SCHEMA,
        "verdict": comparison.verdict,
        "sampled": comparison.sampled,
        "base": _side(comparison.base),
        "new": _side(comparison.new),
        "incomparable": list(comparison.incomparable),
        "remarks": list(comparison.remarks),
        "measures": [_row(row) for row in rows],
        "findings": [
            {
                "id": one.id,
                "change": one.change,
                "severity": one.severity,
                "base_cost_ns": one.base_cost_ns,
                "new_cost_ns": one.new_cost_ns,
                "message": one.message,
            }
            for one in comparison.findings
        ],
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "paths": list(side.paths),
        "samples": len(side.samples),
        "gpus": list(side.setting.gpus),
        "layers": sorted(side.setting.layers),
        "load_bytes": side.setting.load_bytes,
    }


def _row(row: Row) -> dict[str, Any]:
    unit = MEASURES[row.measure].unit
    found = row.difference
    shift = None if found is None else _number(unit, found.shift)
    return {
        "measure": row.measure,
        "subject": row.subject or None,
        "device": row.device,
        "unit": unit,
        "verdict": row.verdict,
        "reason": row.reason,
        "counts": row.counts,
        "base": _spread(unit, row.base),
        "new": _spread(unit, row.new),
        "difference": shift,
        "relative": found.shift / abs(row.base.median) if found and row.base and row.base.median else None,
        "interval": None if found is None else [_number(unit, found.low), _number(unit, found.high)],
        "interval_kind": None if found is None else found.interval,
        "drift": None if found is None else _number(unit, found.wander),
        "explained": None if found is None else _number(unit, found.explained),
        "p": row.p,
        "min_effect": _number(unit, row.min_effect),
    }


def _spread(unit: str, spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"n": spread.n} | {name: _number(unit, getattr(spread, name)) for name in ("median", "low", "high")}


def _number(unit: str, number: float) -> float:
    """Return a number as JSON has it: whole ns, anything else as it is."""
    return round(number) if unit == "ns" or float(number).is_integer() else number
