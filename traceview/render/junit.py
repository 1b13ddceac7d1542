"""Outcomes as a JUnit report: a suite per trace, a case per rule; broken is a failure, cannot judge an error."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from traceview.analysis.budget import BROKEN, CANNOT_JUDGE
from traceview.render.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.budget import Checked, Outcome

_TAGS = {BROKEN: "failure", CANNOT_JUDGE: "error"}


def render(checked: Sequence[Checked]) -> bytes:
    """Return a JUnit file (the layout of Jenkins' junit-10.xsd) in UTF-8."""
    root = ElementTree.Element("testsuites", {"name": "traceview check"} | _counts([*_all(checked)]))
    for one in checked:
        suite = ElementTree.SubElement(
            root, "testsuite", {"name": _clean(one.path), **_counts(one.outcomes), "skipped": "0", "time": "0"}
        )
        for outcome in one.outcomes:
            _case(suite, one.path, outcome)
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _all(checked: Sequence[Checked]) -> list[Outcome]:
    return [outcome for one in checked for outcome in one.outcomes]


def _counts(outcomes: Sequence[Outcome]) -> dict[str, str]:
    verdicts = [outcome.verdict for outcome in outcomes]
    return {
        "tests": str(len(verdicts)),
        "failures": str(verdicts.count(BROKEN)),
        "errors": str(verdicts.count(CANNOT_JUDGE)),
    }


def _case(suite: ElementTree.Element, path: str, outcome: Outcome) -> None:
    names = {"name": _clean(outcome.rule), "classname": f"traceview.{_clean(path)}", "time": "0"}
    case = ElementTree.SubElement(suite, "testcase", names)
    tag = _TAGS.get(outcome.verdict)
    if tag is None:
        return
    told = ElementTree.SubElement(case, tag, {"message": _clean(_told(outcome)), "type": outcome.verdict})
    told.text = "\n".join(
        _clean(line) for line in (outcome.message, outcome.about, outcome.advice, *outcome.where) if line
    )


def _told(outcome: Outcome) -> str:
    return (
        f"{outcome.message}: {outcome.about}" if outcome.verdict == CANNOT_JUDGE and outcome.about else outcome.message
    )


def _clean(text: str) -> str:
    """Return text without characters that XML cannot hold."""
    return shown(text, 2000)
