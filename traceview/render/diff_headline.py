"""The first lines of a comparison: faster, slower or the same, what shows it, and how sure that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.analysis.compare import CANNOT_TELL, IMPROVED, REGRESSED, SAME
from traceview.analysis.compare_measures import MEASURES
from traceview.render.diff_values import absolute, change, digits, value
from traceview.render.shown import shown
from traceview.render.tables import BAD, GOOD, MUTED, STRONG, Line, Part, line
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.compare import Comparison, Row

CAUSES_SHOWN = 3
_WORDS = {REGRESSED: ("Regressed", BAD), IMPROVED: ("Improved", GOOD), SAME: ("Same", GOOD)}


def headline(comparison: Comparison) -> tuple[Line, ...]:
    """Return the answer in one line, then where the difference went and by what rule it counts."""
    rows = [one for one in comparison.rows if one.counts]
    makespan = _slowest([one for one in rows if one.measure == "makespan_ns"])
    first = _answer(comparison, rows, makespan)
    calls = _calls(comparison.rows) if comparison.sampled == "files" else ()
    return (first, *calls, *_causes(rows, makespan), *finding_names(comparison), *_rule(comparison))


def caveats(comparison: Comparison) -> tuple[Line, ...]:
    """Return lines on what else was different, which a reader should know before believing the differences."""
    unlike = (line(Part("Not comparable: ", BAD), shown(reason, 200)) for reason in comparison.incomparable)
    remarks = (line(Part("Mind: ", STRONG), shown(remark, 400)) for remark in comparison.remarks)
    return (*unlike, *remarks)


def summary(comparison: Comparison) -> str:
    """Return the answer as one line of plain text."""
    return "".join(part.text for part in headline(comparison)[0])


def sentence(row: Row) -> str:
    """Return what one row says as a line of plain text: ``makespan 12.77 ms instead of 11.8 ms (+8.2 %)``."""
    unit = MEASURES[row.measure].unit
    base, new = (value(unit, side.median) if side else "?" for side in (row.base, row.new))
    return f"{_name(row)} {new} instead of {base} ({change(row)})"


def _answer(comparison: Comparison, rows: Sequence[Row], makespan: Row | None) -> Line:
    if comparison.verdict == CANNOT_TELL:
        return _unknown(comparison, rows, makespan)
    word, role = _WORDS[comparison.verdict]
    opening = Part(f"{word}: ", role)
    changed = [one for one in rows if one.verdict == comparison.verdict]
    if makespan is None:
        return line(opening, *_listed(changed))
    base, new = (value("ns", side.median) if side else "?" for side in (makespan.base, makespan.new))
    if makespan.verdict == comparison.verdict and makespan.verdict != SAME:
        return line(opening, f"a forward takes {new} instead of {base} ({change(makespan)}){_on(makespan)}.")
    if comparison.verdict == SAME:
        return line(
            opening, f"a forward takes {new}, before {base}; no measure of {len(rows)} changed{_blind(makespan)}."
        )
    if makespan.verdict == IMPROVED:
        return line(
            opening, *_listed(changed), f" though a forward takes {new} instead of {base} ({change(makespan)})."
        )
    if makespan.verdict == CANNOT_TELL:
        return line(opening, *_listed(changed), f"; the makespan, {new} and before {base}, cannot be told.")
    return line(opening, *_listed(changed), f"; the makespan stays the same: {new}, before {base}{_blind(makespan)}.")


def _unknown(comparison: Comparison, rows: Sequence[Row], makespan: Row | None) -> Line:
    opening = Part("Cannot tell: ", STRONG)
    untold = [one for one in rows if one.verdict == CANNOT_TELL]
    if not rows:
        return line(opening, "the sides have no measure in common.")
    shared = (one for one in untold if one.base is not None and one.new is not None)
    first = makespan if makespan in untold and makespan else next(shared, untold[0])
    reason = first.reason or "nothing to compare"
    if comparison.sampled == "files" and not makespan:
        reason = f"{_forwardless(comparison)} (--forward-range names other ranges); {reason}"
    if len(untold) == len(rows):
        return line(opening, f"{reason}.")
    many = f"{len(untold)} of {len(rows)} measures"
    if makespan is None or makespan in untold:
        return line(opening, f"{reason} ({many}; the others did not regress).")
    base, new = (value("ns", side.median) if side else "?" for side in (makespan.base, makespan.new))
    return line(
        opening,
        f"{many}, {_name(first)} for one: {reason}; the others did not regress, and a forward takes {new} instead of "
        f"{base} ({change(makespan)}, {makespan.verdict}).",
    )


def _forwardless(comparison: Comparison) -> str:
    """Say which side keeps forwards from being compared."""
    sides = (("base", comparison.base), ("new", comparison.new))
    without = [word for word, side in sides if not side.setting.layers]
    where = (
        f"on the {without[0]} side" if len(without) == 1 else "on either side" if without else "in some of the traces"
    )
    return f"no measured forward {where}"


def _calls(rows: Sequence[Row]) -> tuple[Line, ...]:
    """Return what kernels and ranges did call by call, where there is no forward to speak of."""
    told = []
    for kind in ("kernel", "range"):
        verdicts = [one.verdict for one in rows if one.measure == f"{kind}_call_ns" and one.reason is None]
        if not verdicts:
            continue
        moved = [f"{verdicts.count(word)} {word}" for word in (REGRESSED, IMPROVED) if word in verdicts]
        told.append(f"of {len(verdicts)} {kind}s {' and '.join(moved) if moved else 'none changed'}")
    return (line("Call by call, ", ", ".join(told), "."),) if told else ()


def _blind(makespan: Row) -> str:
    """Say which change of the makespan could have gone unseen where that is more than what counts."""
    found = makespan.difference
    if found is None or makespan.base is None or not makespan.base.median:
        return ""
    reach = max(abs(found.low), abs(found.high))
    if reach <= makespan.min_effect:
        return ""
    return f"; a change of up to {digits(100 * reach / makespan.base.median)} % might not have shown"


def _listed(rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the largest changes by name, and how many more there are."""
    if not rows:
        return ("no measure changed",)
    ordered = sorted(rows, key=lambda one: -abs(_relative(one)))
    named = [f"{_name(one)} {change(one)}" for one in ordered[:CAUSES_SHOWN]]
    more = len(ordered) - len(named)
    return (", ".join(named), f" and {more} more" if more > 0 else "")


def _relative(one: Row) -> float:
    if one.difference is None or not one.min_effect:
        return 0.0
    return one.difference.shift / one.min_effect


def _name(one: Row) -> str:
    title = MEASURES[one.measure].title
    place = f" on GPU {one.device}" if one.device is not None else ""
    return f"{title} of {one.subject}{place}" if one.subject else f"{title}{place}"


def _on(one: Row) -> str:
    return f" on GPU {one.device}" if one.device is not None else ""


def _slowest(makespans: Sequence[Row]) -> Row | None:
    """Return the makespan to speak of: of several devices, the one that moved most."""
    order = {REGRESSED: 0, IMPROVED: 1, CANNOT_TELL: 2, SAME: 3}
    return min(makespans, key=lambda one: (order[one.verdict], -abs(_relative(one))), default=None)


def _causes(rows: Sequence[Row], makespan: Row | None) -> tuple[Line, ...]:
    """Return the categories of the accounting that moved with the makespan."""
    if makespan is None or makespan.difference is None or makespan.verdict not in (REGRESSED, IMPROVED):
        return ()
    moved = [
        one
        for one in rows
        if one.measure in CATEGORIES
        and one.device == makespan.device
        and one.difference is not None
        and one.difference.shift * makespan.difference.shift > 0
        and one.verdict == makespan.verdict
    ]
    if not moved:
        return ()
    moved.sort(key=lambda one: -abs(one.difference.shift if one.difference else 0))
    named = ", ".join(f"{one.measure} {absolute(one)}" for one in moved[:CAUSES_SHOWN])
    return (line("Where it went: ", Part(named, STRONG), "."),)


def finding_names(comparison: Comparison) -> tuple[Line, ...]:
    """Return a line on the findings that appeared and went, if any did."""
    parts: list[str | Part] = []
    for change_word, role in (("appeared", BAD), ("went", GOOD)):
        names = [one.id for one in comparison.findings if one.change == change_word]
        if names:
            parts += [", " if parts else "Findings that ", f"{change_word}: ", Part(", ".join(names), role)]
    return (line(*parts, "."),) if parts else ()


def _rule(comparison: Comparison) -> tuple[Line, ...]:
    """Say what had to be true for a difference to count."""
    tested = [one for one in comparison.rows if one.p is not None]
    judged = [one for one in comparison.rows if one.difference is not None and one.reason is None]
    if not judged:
        return ()
    counts = sorted({(one.base.n, one.new.n) for one in judged if one.base and one.new})
    most = max(counts, key=lambda pair: min(pair))
    many = f"{most[0]} against {most[1]} samples" if len(counts) == 1 else f"up to {most[0]} against {most[1]} samples"
    if tested:
        rule = f"rank tests, corrected for {comparison.family} measures so that 1 in 20 diffs at most errs"
    else:
        rule = "too few for a test, so a change exceeds both spreads together"
    return (line(Part(f"{many}: {rule}, and {100 * comparison.min_effect:g} %.", MUTED)),)
