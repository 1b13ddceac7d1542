"""Outcomes as SARIF 2.1.0, for code scanning: a result per broken rule, at its source line where that is known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import traceview
from traceview.analysis.budget import BROKEN, CANNOT_JUDGE
from traceview.render.check_location import locate
from traceview.render.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceview.analysis.budget import Checked, Outcome
    from traceview.render.check_location import Location

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render(checked: Sequence[Checked], root: Path) -> bytes:
    """Return a SARIF log; ``root`` is the folder (the repository) that its locations are relative to.

    What cannot be judged is no result, but a notification of the tool.
    """
    broken = [(one.path, outcome) for one in checked for outcome in one.outcomes if outcome.verdict == BROKEN]
    untold = [(one.path, outcome) for one in checked for outcome in one.outcomes if outcome.verdict == CANNOT_JUDGE]
    rules: dict[str, Outcome] = {}
    for _, outcome in broken:
        rules.setdefault(outcome.id, outcome)
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "traceview",
                        "version": traceview.__version__,
                        "rules": [_rule(outcome) for outcome in rules.values()],
                    }
                },
                "invocations": [
                    {
                        "executionSuccessful": not untold,
                        "toolExecutionNotifications": [_notification(path, one, root) for path, one in untold],
                    }
                ],
                "results": [_result(path, one, [*rules].index(one.id), root) for path, one in broken],
            }
        ],
    }
    return (json.dumps(log, indent=2) + "\n").encode("ascii")


def _rule(outcome: Outcome) -> dict[str, Any]:
    about = outcome.about or outcome.id.replace("_", " ")
    rule: dict[str, Any] = {"id": outcome.id, "shortDescription": {"text": shown(about)}}
    return rule | ({"help": {"text": shown(outcome.advice)}} if outcome.advice else {})


def _result(path: str, outcome: Outcome, rule: int, root: Path) -> dict[str, Any]:
    place = locate(path, outcome.where, root)
    result = {
        "ruleId": outcome.id,
        "ruleIndex": rule,
        "level": "error",
        "message": {"text": shown(_told(outcome))},
        "locations": [_location(place)],
        "partialFingerprints": {"traceviewRule/v1": f"{outcome.rule}@{place.path}"},
    }
    if place.line is not None:
        result["relatedLocations"] = [_location(locate(path, (), root))]
    return result


def _told(outcome: Outcome) -> str:
    texts = (outcome.message, outcome.about, outcome.advice)
    return ". ".join(text.rstrip(".") for text in texts if text) + "."


def _notification(path: str, outcome: Outcome, root: Path) -> dict[str, Any]:
    return {
        "level": "warning",
        "message": {"text": shown(_told(outcome))},
        "locations": [_location(locate(path, (), root))],
    }


def _location(place: Location) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(place.path)}}
    if place.line is not None:
        physical["region"] = {"startLine": place.line}
    return {"physicalLocation": physical}
