"""Holds a report against a budget: what is within it, what is broken, and what the trace cannot answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceview.analysis.advice import ADVICE
from traceview.analysis.budget_file import ANY, SEVERITIES, FindingRule
from traceview.analysis.budget_quantities import blocking_in, is_accidental
from traceview.analysis.compare import CANNOT_TELL, REGRESSED
from traceview.units import duration, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traceview.analysis.budget_file import Limit, Rules
    from traceview.analysis.compare import Comparison, Row
    from traceview.report import Finding, Report

PASS, BROKEN, CANNOT_JUDGE = "pass", "broken", "cannot judge"
EXIT_CODES = {PASS: 0, BROKEN: 1, CANNOT_JUDGE: 3}

_FINDING_SYNCS = {
    "accidental_sync": "explicit",
    "scalar_readback": "scalar_readback",
    "implicit_sync": "implicit",
    "pageable_source": "implicit",
}
"""Findings about blocking calls, and the kind of call that shows where they come from."""

_FINDING_NEEDS = {
    "accidental_sync": ("api_calls",),
    "scalar_readback": ("api_calls", "copies"),
    "implicit_sync": ("api_calls",),
    "late_submission": ("api_calls",),
    "host_bound": ("api_calls",),
    "inbound_contention": ("gpu_metrics",),
    "remote_numa": (),
}
"""Data without which a finding cannot appear; copies for those not named."""

LAYERS_APART = 3
"""A measure that regressed in more layers than these is told once."""

_WHOLE_FROM = 1_000
"""from here on a number has four digits before its point"""

_ALL_NEED = ("kernels", "copies", "api_calls")


@dataclass(frozen=True)
class Outcome:
    """One rule held against one file."""

    rule: str
    """``makespan_ms <= 12``, ``!high``, ``no regression of makespan``"""
    id: str
    """what the rule is about: a quantity, a finding, a measure"""
    verdict: str
    """``pass``, ``broken`` or ``cannot judge``"""
    message: str
    """one short sentence without its stop"""
    about: str = ""
    """what the rule is about; where it cannot be judged, why"""
    advice: str = ""
    value: float | None = None
    """in the rule's unit"""
    bound: float | None = None
    where: tuple[str, ...] = ()
    """frames of the costliest call to blame, innermost first"""


@dataclass(frozen=True)
class Checked:
    """One file held against what it has to keep to."""

    path: str
    basis: str
    """``budget``, ``baseline``, ``budget and baseline``, or ``findings`` where there is neither"""
    outcomes: tuple[Outcome, ...]
    comparison: Comparison | None = None
    causes: tuple[Outcome, ...] = ()
    """findings that may explain what is broken and that no rule is about"""

    @property
    def verdict(self) -> str:
        """Return the verdict of the file."""
        return worst(outcome.verdict for outcome in self.outcomes)


def worst(verdicts: Iterable[str]) -> str:
    """Return ``broken`` where anything is, else ``cannot judge`` where anything is, else ``pass``."""
    found = set(verdicts)
    return BROKEN if BROKEN in found else CANNOT_JUDGE if CANNOT_JUDGE in found else PASS


def judge(report: Report, rules: Rules) -> tuple[Outcome, ...]:
    """Return one outcome per rule, findings first; a limit whose measure the trace lacks cannot be judged."""
    limits = (_judge_limit(report, limit) for limit in rules.limits)
    findings = (outcome for rule in rules.findings for outcome in _judge_finding(report, rule))
    return (*findings, *limits)


def judge_comparison(comparison: Comparison, told: str, tell: Callable[[Row], str]) -> tuple[Outcome, ...]:
    """Return one outcome per regressed measure, or one that says that there is none or that it cannot be told.

    ``told`` is the comparison in one line, ``tell`` writes a regressed row as one. A measure that regressed in many
    layers is one outcome, told by the layer that regressed most.
    """
    regressed = [row for row in comparison.rows if row.counts and row.verdict == REGRESSED]
    if not regressed:
        verdict = CANNOT_JUDGE if comparison.verdict == CANNOT_TELL else PASS
        return (Outcome("no regression", "baseline", verdict, told),)
    alike: dict[tuple[str, int | None], list[Row]] = {}
    for row in regressed:
        alike.setdefault((row.measure, row.device), []).append(row)
    many = [rows for rows in alike.values() if len(rows) > LAYERS_APART]
    few = [[row] for rows in alike.values() if len(rows) <= LAYERS_APART for row in rows]
    order = {id(row): place for place, row in enumerate(regressed)}
    return tuple(_regressed(rows, tell) for rows in sorted((*many, *few), key=lambda rows: order[id(rows[0])]))


def _regressed(rows: Sequence[Row], tell: Callable[[Row], str]) -> Outcome:
    """Return the outcome for one row, or for those of one measure in many layers."""
    worst_row = max(rows, key=lambda row: abs(row.difference.shift) if row.difference else 0.0)
    place = f" on GPU {worst_row.device}" if worst_row.device is not None else ""
    subject = f" of {worst_row.subject}" if worst_row.subject and len(rows) == 1 else ""
    return Outcome(
        rule=f"no regression of {worst_row.measure}{subject}{place}",
        id=worst_row.measure,
        verdict=BROKEN,
        message=tell(worst_row) + (f", most of {len(rows)} layers" if len(rows) > 1 else ""),
        value=worst_row.new.median if worst_row.new else None,
    )


def unreadable(path: str, message: str, basis: str) -> Checked:
    """Return the outcome for a file that cannot be read: that is no regression, and no pass either."""
    return Checked(path, basis, (Outcome("a readable trace", "input", CANNOT_JUDGE, message),))


def _judge_limit(report: Report, limit: Limit) -> Outcome:
    key = limit.key
    value = key.read(report)
    if value is None:
        return Outcome(str(limit), key.quantity.name, CANNOT_JUDGE, f"{key.key} cannot be judged", _why(report))
    verdict = PASS if limit.holds(value) else BROKEN
    where = _blamed(report, key.quantity.syncs) if verdict == BROKEN and key.quantity.syncs else ()
    return Outcome(
        rule=str(limit),
        id=key.quantity.name,
        verdict=verdict,
        message=f"{key.key} is {_apart(value, limit.bound)}, to be {limit.sign} {written_number(limit.bound)}",
        about=key.quantity.about,
        value=value,
        bound=limit.bound,
        where=where,
    )


def written_number(value: float) -> str:
    """Return a number with its thousands apart, and with four digits that count where it is no whole one."""
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= _WHOLE_FROM else f"{value:.4g}"


def _apart(value: float, bound: float) -> str:
    """Return a number with as many digits as it takes to tell it from the bound."""
    written = written_number(value)
    return written if value == bound or written != written_number(bound) else f"{value:.12g}"


def _why(report: Report) -> str:
    """Return why a measure is missing, and what to do, in the words of the report where it has any."""
    if not report.forwards:
        reason = next((one for one in report.abstained if one.measure.startswith("forwards")), None)
        return f"no forward ({reason.reason})" if reason else "no forward"
    if report.summary is None:
        return "all forwards are warm-up; --warmup 0 measures them"
    if report.trace.missing:
        lacking = ", ".join(one.replace("_", " ") for one in report.trace.missing)
        return f"no layers, or the capture lacks what it needs (no {lacking})"
    return "no layers"


def _judge_finding(report: Report, rule: FindingRule) -> list[Outcome]:
    found = [finding for finding in report.findings if _meant(rule, finding)]
    if found and rule.forbidden:
        return [_broken(report, rule, finding) for finding in found]
    if found:
        return [Outcome(str(rule), rule.name, PASS, f"{rule.name} is there, as expected")]
    missing = _missing(report, rule)
    if missing:
        return [Outcome(str(rule), rule.name, CANNOT_JUDGE, f"{rule} cannot be judged", missing)]
    if rule.forbidden:
        kind = f"of severity {rule.name}" if rule.name in SEVERITIES else "at all" if rule.name == ANY else rule.name
        return [Outcome(str(rule), rule.name, PASS, f"no finding {kind}")]
    return [Outcome(str(rule), rule.name, BROKEN, f"{rule.name} is expected and is not there")]


def _meant(rule: FindingRule, finding: Finding) -> bool:
    return rule.name in (finding.id, finding.severity, ANY)


def causes(report: Report, outcomes: Sequence[Outcome], comparison: Comparison | None = None) -> tuple[Outcome, ...]:
    """Return the findings that no broken rule names, the costliest first; nothing where no rule is broken.

    With a ``comparison`` only those that its base did not have.
    """
    broken = {outcome.id for outcome in outcomes if outcome.verdict == BROKEN}
    known = {one.id for one in comparison.findings if one.change == "stayed"} if comparison else set()
    found = [finding for finding in report.findings if finding.id not in broken | known] if broken else []
    return tuple(_broken(report, FindingRule(finding.id, forbidden=True), finding) for finding in found)


def _broken(report: Report, rule: FindingRule, finding: Finding) -> Outcome:
    cost = f"{duration(finding.cost_ns)} ({percent(finding.share)})"
    kind = _FINDING_SYNCS.get(finding.id)
    return Outcome(
        rule=str(rule),
        id=finding.id,
        verdict=BROKEN,
        message=f"{finding.id} costs {cost}, severity {finding.severity}",
        about=finding.message,
        advice=finding.advice,
        value=finding.share,
        where=_blamed(report, kind) if kind else (),
    )


def _missing(report: Report, rule: FindingRule) -> str:
    """Return what a finding would need that the trace does not have, or nothing."""
    if report.summary is None:
        return _why(report)
    needs = _ALL_NEED if rule.name not in ADVICE else _FINDING_NEEDS.get(rule.name, ("copies",))
    lacking = [need.replace("_", " ") for need in needs if need in report.trace.missing]
    return f"the capture holds no {' and no '.join(lacking)}" if lacking else ""


def _blamed(report: Report, kind: str) -> tuple[str, ...]:
    """Return the call stack of the costliest blocking call of a kind that has one."""
    calls: Sequence[tuple[str, ...] | None] = [sync.where for sync in blocking_in(report, is_accidental(kind))]
    return next((where for where in calls if where), ())
