"""Lays out outcomes as a page: pass or not in the first line, then each trace with its rules."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from traceview.analysis.budget import BROKEN, CANNOT_JUDGE, PASS, worst
from traceview.render.diff_headline import caveats, finding_names
from traceview.render.shown import shown
from traceview.render.tables import BAD, CODE, GOOD, MUTED, STRONG, Entry, Line, Page, Part, Section, line, name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.budget import Checked, Outcome

FRAMES_SHOWN = 3
TRACES_IN_FULL = 5
"""Of more traces than these, the rules that they keep to are only counted."""

_ROLES = {PASS: GOOD, BROKEN: BAD, CANNOT_JUDGE: STRONG}
_WORDS = {PASS: "Pass", BROKEN: "Broken", CANNOT_JUDGE: "Cannot judge"}
_BASES = {
    "findings": "Neither budget nor baseline was given: any finding of high severity fails.",
}


def layout(checked: Sequence[Checked], unmatched: Sequence[str] = ()) -> Page:
    """Return outcomes as a page; a single trace that cannot be read is one line.

    ``unmatched`` are globs of the budget that no trace matches.
    """
    if unreadable_line(checked):
        return Page((line(unreadable_line(checked)),), (), ())
    basis = _BASES.get(checked[0].basis) if checked else None
    header = [line(Part(basis, MUTED))] if basis else []
    header += [line("No trace here matches ", name(f'[files."{glob}"]', 80), ".") for glob in unmatched]
    brief = len(checked) > TRACES_IN_FULL
    return Page((_answer(checked),), tuple(header), tuple(_section(one, brief) for one in checked))


def unreadable_line(checked: Sequence[Checked]) -> str:
    """Return the one line that says all where the only trace cannot be read, else nothing."""
    if len(checked) != 1 or [outcome.id for outcome in checked[0].outcomes] != ["input"]:
        return ""
    return f"{_WORDS[CANNOT_JUDGE]}: {shown(checked[0].outcomes[0].message)}"


def _answer(checked: Sequence[Checked]) -> Line:
    """Say how it stands, and in the first line already what is worst."""
    verdict = worst(one.verdict for one in checked)
    outcomes = [outcome for one in checked for outcome in one.outcomes]
    found = [(one, outcome) for one in checked for outcome in one.outcomes if outcome.verdict == verdict]
    opening = Part(f"{_WORDS[verdict]}: ", _ROLES[verdict])
    if verdict == PASS:
        rules = "its one rule" if len(outcomes) == 1 else f"all {len(outcomes)} rules"
        many = f"{len(checked)} traces keep" if len(checked) > 1 else "the trace keeps"
        return line(opening, f"{many} to {rules}.")
    one, first = found[0]
    told = first.message if verdict == BROKEN or not first.about else f"{first.message}: {first.about}"
    where = (" in ", name(one.path)) if len(checked) > 1 and str(one.path) not in told else ()
    regressed = all(outcome.rule.startswith("no regression of ") for _, outcome in found)
    of = " measures regressed" if regressed else f" of {len(outcomes):,} rules"
    more = f"; {len(found):,}{of} in all" if len(found) > 1 else ""
    stop = "" if more == "" and not where and told.endswith(".") else "."
    return line(opening, Part(shown(told, 300), STRONG), *where, f"{more}{stop}")


def _section(one: Checked, brief: bool) -> Section:
    told = one.comparison
    blocks: list[Line | Entry] = [*finding_names(told), *caveats(told)] if told else []
    blocks += [_broken(outcome) for outcome in one.outcomes if outcome.verdict == BROKEN]
    blocks += [_cause(outcome) for outcome in one.causes]
    blocks += _untold([outcome for outcome in one.outcomes if outcome.verdict == CANNOT_JUDGE])
    blocks += _kept([outcome for outcome in one.outcomes if outcome.verdict == PASS], brief)
    blocks += _next(one)
    return Section(shown(one.path, 80), one.verdict, tuple(blocks), detail=False)


def _kept(outcomes: Sequence[Outcome], brief: bool) -> list[Line]:
    if brief and len(outcomes) > 1:
        return [line(_word(PASS), f"{len(outcomes)} rules")]
    return [line(_word(PASS), shown(outcome.message, 400)) for outcome in outcomes]


def _next(one: Checked) -> list[Line]:
    """Return what to type next where a trace does not pass."""
    if one.verdict == PASS or any(outcome.id == "input" for outcome in one.outcomes):
        return []
    path = shlex.quote(one.path)
    if one.comparison is not None:
        base = " ".join(shlex.quote(path) for path in one.comparison.base.paths)
        command = f"traceview diff --base {base} --new {path}"
    else:
        command = f"traceview {'report' if one.verdict == BROKEN else 'doctor'} {path}"
    return [line("see: ", Part(shown(command, 400), CODE))]


def _word(verdict: str) -> Part:
    return Part(f"{_WORDS[verdict].lower():<13}", _ROLES[verdict])


def _cause(outcome: Outcome) -> Entry:
    return Entry(line(Part(f"{'cause':<13}", STRONG), shown(outcome.message, 400)), _below(outcome))


def _broken(outcome: Outcome) -> Entry:
    return Entry(line(_word(BROKEN), shown(outcome.message, 400)), _below(outcome))


def _below(outcome: Outcome) -> tuple[Line, ...]:
    """Return what an outcome is about, where it comes from, and what to do."""
    below = [line(shown(outcome.about, 400))] if outcome.about else []
    below += [line(Part(f"at {shown(frame, 160)}", MUTED)) for frame in outcome.where[:FRAMES_SHOWN]]
    below += [line(Part("→ ", GOOD), shown(outcome.advice, 400))] if outcome.advice else []
    return tuple(below)


def _untold(outcomes: Sequence[Outcome]) -> list[Line | Entry]:
    """Return one entry per reason, with all the rules that it keeps from being judged."""
    rules: dict[str, list[str]] = {}
    for outcome in outcomes:
        rules.setdefault(outcome.about or outcome.message, []).append(outcome.rule)
    return [
        Entry(line(_word(CANNOT_JUDGE), shown(reason, 400)), (line(Part(shown(", ".join(kept), 600), MUTED)),))
        for reason, kept in rules.items()
    ]
