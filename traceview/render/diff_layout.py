"""Lays a comparison out as a page: the answer, what was compared, then what changed and by how much."""

from __future__ import annotations

from pathlib import PurePath
from statistics import median
from typing import TYPE_CHECKING

from traceview.analysis.compare import CANNOT_TELL, IMPROVED, REGRESSED, SAME
from traceview.analysis.compare_measures import FORWARD_MEASURES, LAYER_MEASURES, MEASURES
from traceview.render.diff_headline import caveats, headline
from traceview.render.diff_values import change, interval, scatter, value
from traceview.render.shown import shown
from traceview.render.tables import (
    BAD,
    GOOD,
    MUTED,
    STRONG,
    Column,
    Entry,
    Line,
    Page,
    Part,
    Section,
    Table,
    line,
    name,
    row,
)
from traceview.units import counted, duration, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.compare import Comparison, Row, Side
    from traceview.analysis.compare_findings import FindingChange
    from traceview.render.tables import Block

LAYERS_APART = 3
"""A change in more layers than these is told in one line."""

NAMES_SHOWN = 8
_NAME_WIDTH = 34
_ROLES = {IMPROVED: GOOD, REGRESSED: BAD, SAME: MUTED, CANNOT_TELL: STRONG}
_WHOLE = tuple(name for name in (*FORWARD_MEASURES, "busy_share") if not MEASURES[name].part)
_PARTS = tuple(name for name in FORWARD_MEASURES if MEASURES[name].part)


def layout(comparison: Comparison, *, only_changed: bool = False) -> Page:
    """Return a comparison as a page; ``only_changed`` leaves out what stayed the same."""
    sections = (
        *_findings(comparison.findings, only_changed),
        *_forward(comparison, only_changed),
        *_parts(comparison, only_changed),
        *_layers(comparison.rows, only_changed),
        *_named(comparison.rows, "kernel", only_changed),
        *_named(comparison.rows, "range", only_changed),
    )
    return Page(headline(comparison), _header(comparison), sections)


def _header(comparison: Comparison) -> tuple[Line, ...]:
    sides = (("base", comparison.base), ("new", comparison.new))
    lines = [line(Part(f"{word:<5}", MUTED), *_side(side, comparison.sampled)) for word, side in sides]
    return (*lines, *caveats(comparison))


def _side(side: Side, sampled: str) -> tuple[Part, ...]:
    names = [name(PurePath(path).name, 60) for path in side.paths[:3]]
    more = len(side.paths) - len(names)
    parts = [part for one in names for part in (Part(", "), one)][1:]
    setting = side.setting
    facts = [f"and {counted(more, 'more file')}"] if more > 0 else []
    if sampled != "files":
        devices = {sample.device for sample in side.samples}
        facts.append(counted(len(side.samples) // max(len(devices), 1), sampled.removesuffix("s"), sampled))
    else:
        facts.append("forwards left aside" if setting.layers else "no measured forwards")
    if setting.layers - {0}:
        layers = sorted(setting.layers)
        facts.append(f"{' or '.join(map(str, layers))} {'layer' if layers == [1] else 'layers'}")
    if setting.load_bytes and sampled != "files":
        facts.append(f"{size(setting.load_bytes)} a forward")
    gpus = [gpu for gpu in dict.fromkeys(setting.gpus) if gpu]
    facts += [shown(", ".join(gpus), 60)] if gpus else []
    return (*parts, Part(" · " + " · ".join(facts)))


def _findings(changes: Sequence[FindingChange], only_changed: bool) -> tuple[Section, ...]:
    kept = [one for one in changes if not only_changed or one.change != "stayed"]
    if not kept:
        return ()
    return (Section("Findings", "", tuple(_finding(one) for one in kept), detail=False),)


def _finding(change: FindingChange) -> Entry:
    role = {"appeared": BAD, "went": GOOD}.get(change.change, STRONG)
    costs = [duration(cost) for cost in (change.base_cost_ns, change.new_cost_ns) if cost is not None]
    cost = f"  {' → '.join(costs)}, {change.severity}"
    return Entry(
        line(Part(change.change, role), "  ", Part(change.id, STRONG), cost), (line(shown(change.message, 400)),)
    )


def _forward(comparison: Comparison, only_changed: bool) -> tuple[Section, ...]:
    title = "Whole trace" if comparison.sampled == "files" else "Forward"
    about = "medians; ± half the wider spread (quartiles, or the range below 5 samples)"
    return _measures(title, about, [one for one in comparison.rows if one.measure in _WHOLE], only_changed)


def _parts(comparison: Comparison, only_changed: bool) -> tuple[Section, ...]:
    rows = [one for one in comparison.rows if one.measure in _PARTS]
    about = f"of the makespan: they count from {100 * comparison.min_effect:g} % of the makespan on"
    return _measures("Parts", about, rows, only_changed)


def _measures(title: str, about: str, found: Sequence[Row], only_changed: bool) -> tuple[Section, ...]:
    rows = [one for one in found if not _nothing(one)]
    kept = [one for one in rows if not only_changed or one.verdict in (IMPROVED, REGRESSED)]
    if not kept:
        return ()
    blocks: list[Block] = [_table(kept, "measure")]
    same = sum(one.verdict == SAME for one in rows if one not in kept)
    untold = len(rows) - len(kept) - same
    left = [f"{same} did not change"] if same else []
    left += [f"{untold} cannot be told"] if untold else []
    if left:
        blocks.append(line(Part(f"of the others {', '.join(left)}", MUTED)))
    return (Section(title, about, tuple(blocks), detail=False),)


def _nothing(one: Row) -> bool:
    """Return whether a row says nothing: no time on either side."""
    both = [side for side in (one.base, one.new) if side is not None]
    return one.verdict == SAME and all(side.median == side.low == side.high == 0 for side in both)


def _layers(rows: Sequence[Row], only_changed: bool) -> tuple[Section, ...]:
    """Return what changed by layer; a change that many layers share is one line."""
    found = [one for one in rows if one.measure in LAYER_MEASURES]
    if not found:
        return ()
    groups: dict[tuple[str, str, int | None], list[Row]] = {}
    for one in found:
        groups.setdefault((one.measure, one.verdict, one.device), []).append(one)
    changed = {key: group for key, group in groups.items() if key[1] in (IMPROVED, REGRESSED)}
    if only_changed and not changed:
        return ()
    blocks: list[Block] = [_many_layers(group) for group in changed.values() if len(group) > LAYERS_APART]
    few = [one for group in changed.values() if len(group) <= LAYERS_APART for one in group]
    if few:
        blocks.append(_table(few, "layer"))
    untold = sum(len(group) for key, group in groups.items() if key[1] == CANNOT_TELL)
    same = len(found) - untold - sum(len(group) for group in changed.values())
    told = f"{same} of {len(found)} measures of layers did not change"
    blocks.append(line(Part(f"{told}, {untold} cannot be told" if untold else told, MUTED)))
    return (Section("Layers", "by number", tuple(blocks), detail=not changed),)


def _many_layers(group: Sequence[Row]) -> Line:
    """Return one line on layers that all changed alike, and which of them most."""
    ordered = sorted(group, key=_weight)
    measure, verdict = MEASURES[group[0].measure], group[0].verdict
    base, new = (
        value(measure.unit, median(side.median for one in group if (side := getattr(one, which)) is not None))
        for which in ("base", "new")
    )
    least, most = change(ordered[0]), change(ordered[-1])
    device = f"GPU {group[0].device} " if group[0].device is not None else ""
    return line(
        f"{device}{measure.title} ",
        Part(verdict, _ROLES[verdict]),
        f" in {len(group)} layers: {base} → {new}, {least} to {most}, most in {ordered[-1].subject}",
    )


def _named(rows: Sequence[Row], kind: str, only_changed: bool) -> tuple[Section, ...]:
    """Return the kernels or ranges that changed, then the longest of the others."""
    found = [one for one in rows if one.measure.startswith(f"{kind}_")]
    changed = sorted((one for one in found if one.verdict in (IMPROVED, REGRESSED)), key=_weight, reverse=True)
    others = sorted((one for one in found if one not in changed), key=_length, reverse=True)
    kept = changed[:NAMES_SHOWN] + ([] if only_changed else others[: max(0, NAMES_SHOWN - len(changed))])
    if not kept:
        return ()
    per = MEASURES[kept[0].measure].title
    about = f"time of {per}, by name without ids and addresses"
    blocks: list[Block] = [_table(kept, kind)]
    if len(found) > len(kept):
        blocks.append(line(Part(f"{len(found) - len(kept)} more, with --format json", MUTED)))
    return (Section(f"{kind.capitalize()}s", about, tuple(blocks), detail=True),)


def _weight(one: Row) -> float:
    return abs(one.difference.shift) if one.difference else 0.0


def _length(one: Row) -> float:
    return max(side.median for side in (one.base, one.new) if side is not None)


def _table(rows: Sequence[Row], first: str) -> Table:
    columns = (
        Column(first),
        Column("base", right=True),
        Column("new", right=True),
        Column("±", right=True, minor=True),
        Column("change", right=True),
        Column(_interval_title(rows), right=True),
        Column("verdict", wraps=True),
    )
    return Table(columns, tuple(_row(one) for one in rows))


def _interval_title(rows: Sequence[Row]) -> str:
    kinds = {one.difference.interval for one in rows if one.difference}
    return "95 % interval" if "95%" in kinds else "lies within"


def _row(one: Row) -> tuple[Line, ...]:
    unit = MEASURES[one.measure].unit
    sides = [value(unit, side.median) if side else "—" for side in (one.base, one.new)]
    verdict = line(Part(one.verdict, _ROLES[one.verdict]))
    if one.verdict == CANNOT_TELL and one.reason:
        verdict = (*verdict, Part(f": {shown(one.reason, 60)}", MUTED))
    return row(_label(one), *sides, scatter(one), change(one), interval(one), verdict)


def _label(one: Row) -> Line:
    title = MEASURES[one.measure].title
    device = f"GPU {one.device} " if one.device is not None else ""
    if not one.subject:
        return line(f"{device}{title}")
    if one.measure in LAYER_MEASURES:
        return line(f"{device}{one.subject} {title}")
    return line(device, name(one.subject.removeprefix("void "), _NAME_WIDTH))
