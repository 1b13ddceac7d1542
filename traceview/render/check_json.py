"""Outcomes as JSON: ``traceview.check/1``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from traceview.analysis.budget import EXIT_CODES, worst
from traceview.render.diff_json import as_dict as comparison_as_dict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.budget import Checked, Outcome

SCHEMA = "traceview.check/1"


def render(checked: Sequence[Checked], unmatched: Sequence[str] = ()) -> str:
    """Return outcomes as one strict JSON object in ASCII; ``unmatched`` are globs of the budget without a trace."""
    verdict = worst(one.verdict for one in checked)
    return json.dumps(
        {
            "schema": SCHEMA,
            "verdict": verdict,
            "exit_code": EXIT_CODES[verdict],
            "unmatched_globs": list(unmatched),
            "traces": [_trace(one) for one in checked],
        },
        indent=2,
        allow_nan=False,
    ) + "\n"  # fmt: skip


def _trace(one: Checked) -> dict[str, Any]:
    return {
        "path": one.path,
        "basis": one.basis,
        "verdict": one.verdict,
        "outcomes": [_outcome(outcome) for outcome in one.outcomes],
        "causes": [
            {"id": cause.id, "message": cause.message, "about": cause.about, "advice": cause.advice}
            | {"where": list(cause.where) or None}
            for cause in one.causes
        ],
        "comparison": None if one.comparison is None else comparison_as_dict(one.comparison, only_changed=True),
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    return {
        "rule": outcome.rule,
        "id": outcome.id,
        "verdict": outcome.verdict,
        "message": outcome.message,
        "value": outcome.value,
        "bound": outcome.bound,
        "about": outcome.about or None,
        "advice": outcome.advice or None,
        "where": list(outcome.where) or None,
    }
