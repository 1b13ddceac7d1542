"""Outcomes as GitHub workflow commands, which become annotations of a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.analysis.budget import BROKEN, CANNOT_JUDGE
from traceview.render.check_location import locate
from traceview.render.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from traceview.analysis.budget import Checked, Outcome

_DATA = (("%", "%25"), ("\r", "%0D"), ("\n", "%0A"))
_PROPERTY = (*_DATA, (":", "%3A"), (",", "%2C"))


def render(checked: Sequence[Checked], root: Path) -> str:
    """Return a line per rule that is broken (an error), then one per trace that cannot be judged (a warning).

    Files are named from ``root``. GitHub shows the first ten of each kind.
    """
    broken = [
        _annotation(one.path, outcome, root) for one in checked for outcome in one.outcomes if _is_broken(outcome)
    ]
    return "".join(f"{text}\n" for text in (*broken, *(text for one in checked for text in _untold(one, root))))


def _is_broken(outcome: Outcome) -> bool:
    return outcome.verdict == BROKEN


def _untold(one: Checked, root: Path) -> list[str]:
    untold = [outcome for outcome in one.outcomes if outcome.verdict == CANNOT_JUDGE]
    if not untold:
        return []
    properties = {"file": locate(one.path, (), root).path, "title": "traceview: cannot judge"}
    reasons = dict.fromkeys(outcome.about or outcome.message for outcome in untold)
    return [_command("warning", properties, f"{len(untold)} of {len(one.outcomes)} rules: {'; '.join(reasons)}")]


def _annotation(path: str, outcome: Outcome, root: Path) -> str:
    place = locate(path, outcome.where, root)
    properties = {"file": place.path} | ({"line": str(place.line)} if place.line is not None else {})
    about = outcome.id if outcome.rule.startswith("!") else outcome.rule
    properties["title"] = f"traceview: {about}"
    told = (outcome.message, outcome.about, outcome.advice)
    return _command("error", properties, ". ".join(text.rstrip(".") for text in told if text))


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    named = ",".join(f"{name}={_escaped(shown(value, 200), _PROPERTY)}" for name, value in properties.items())
    return f"::{kind} {named}::{_escaped(shown(message), _DATA)}"


def _escaped(text: str, replacements: Sequence[tuple[str, str]]) -> str:
    for character, written in replacements:
        text = text.replace(character, written)
    return text
