"""Ranks side by side as JSON (``traceview.fleet/1``): times int ns, ratios float, what nobody knows is absent."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from traceview.render.json import _object

if TYPE_CHECKING:
    from traceview.analysis.fleet import Fleet, Rank

SCHEMA = "traceview.fleet/1"


def render(fleet: Fleet) -> str:
    """Return the comparison as one JSON object in ASCII."""
    return json.dumps(as_dict(fleet), indent=2, allow_nan=False, ensure_ascii=True) + "\n"


def as_dict(fleet: Fleet) -> dict[str, Any]:
    """Return the comparison as plain dicts; ``alignment`` is None where ``unaligned`` says why."""
    return {
        "schema": SCHEMA,
        "ranks": [_rank(rank) for rank in fleet.ranks],
        "spreads": [_known(spread) for spread in fleet.spreads],
        "stragglers": [_known(straggler) for straggler in fleet.stragglers],
        "alignment": None if fleet.alignment is None else _known(fleet.alignment),
        "unaligned": fleet.unaligned,
    }


def _rank(rank: Rank) -> dict[str, Any]:
    row = _known(rank)
    if rank.measures is not None:
        row["measures"] = _object(rank.measures)
    if rank.worst is not None:
        row["worst"] = _object(rank.worst)
    if rank.passes is not None:
        row["passes"] = [
            {"index": index, "begin_utc_ns": begin, "end_utc_ns": end} for index, (begin, end) in rank.passes.items()
        ]
    if rank.stalls is not None:
        row["stalls"] = [{"layer": layer, "stall_ns": ns} for layer, ns in rank.stalls.items()]
    return row


def _known(record: Any) -> dict[str, Any]:
    """Return the fields of a result that are not None, mappings as plain dicts."""
    values = {entry.name: getattr(record, entry.name) for entry in fields(record)}
    return {
        name: dict(value) if hasattr(value, "items") else value for name, value in values.items() if value is not None
    }
