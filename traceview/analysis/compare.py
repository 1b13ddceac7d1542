"""Compares two sides, each the forwards of some captures: what changed beyond chance, and what cannot be told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis import statistics
from traceview.analysis.compare_clocks import pace_change
from traceview.analysis.compare_findings import FindingChange, finding_changes
from traceview.analysis.compare_measures import MEASURES, Key, Measure
from traceview.analysis.compare_remarks import find_remarks
from traceview.analysis.compare_setting import Setting, incomparable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.analysis.compare_clocks import Paces
    from traceview.analysis.compare_measures import Sample
    from traceview.analysis.statistics import Difference, Floats, Spread
    from traceview.report import Finding

IMPROVED, REGRESSED, SAME, CANNOT_TELL = "improved", "regressed", "same", "cannot tell"

MIN_EFFECT = 0.02
"""A smaller difference does not count, however certain: of the measure itself, or of the makespan for parts of it."""

_FLOORS = {"ns": 2_000.0, "count": 1.0, "ratio": 0.01, "rate": 0.0}
"""Differences below these say nothing whatever the median: the host's clock and the GPU's agree to about a µs."""


@dataclass(frozen=True)
class Row:
    """One measure on both sides."""

    measure: str
    subject: str
    """``layer 3``, or a kernel's or range's folded name, or nothing"""
    device: int | None
    """counted from 0; None where a side has one device"""
    verdict: str
    """``improved``, ``regressed``, ``same`` or ``cannot tell``"""
    reason: str | None
    """why it cannot be told"""
    base: Spread | None
    new: Spread | None
    difference: Difference | None
    min_effect: float
    """in the measure's unit"""
    p: float | None
    """corrected for all measures of the comparison; None where nothing was tested"""
    counts: bool
    """whether the row decides the verdict of the whole"""
    testable: bool
    """whether its samples scatter, or differ, enough for a change that counts"""


@dataclass(frozen=True)
class Side:
    """What stands on one side."""

    paths: tuple[str, ...]
    samples: tuple[Sample, ...]
    setting: Setting
    findings: tuple[tuple[Finding, ...], ...] = ()
    """of each file"""
    paces: Paces = field(default_factory=dict)
    """how long its kernels take"""


@dataclass(frozen=True)
class Comparison:
    """Two sides compared."""

    base: Side
    new: Side
    sampled: str
    """what a sample is, in words"""
    verdict: str
    rows: tuple[Row, ...]
    findings: tuple[FindingChange, ...]
    incomparable: tuple[str, ...]
    """how the sides differ in what was run"""
    remarks: tuple[str, ...] = ()
    """what else makes their times differ"""
    family: int = 0
    """how many measures share the chance of a false alarm"""
    min_effect: float = MIN_EFFECT
    """smallest share that counts, where no other was chosen for a measure"""


@dataclass(frozen=True)
class Thresholds:
    """Smallest difference that counts, as a share: ``default``, or that of the measure's name."""

    default: float = MIN_EFFECT
    by_measure: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> float:
        """Return the share for a measure."""
        return self.by_measure.get(name, self.default)


def compare(base: Side, new: Side, thresholds: Thresholds | None = None, sampled: str = "forwards") -> Comparison:
    """Return what changed from ``base`` to ``new``."""
    clocks = {device: pace_change(pace, new.paces.get(device, {})) for device, pace in base.paces.items()}
    rows = compare_samples(base.samples, new.samples, thresholds, (base.setting, new.setting), clocks)
    return Comparison(
        base=base,
        new=new,
        sampled=sampled,
        verdict=_overall(rows),
        rows=rows,
        findings=finding_changes(base.findings, new.findings),
        incomparable=tuple(dict.fromkeys(incomparable(base.setting, new.setting).values())),
        remarks=find_remarks((base, new), rows, clocks),
        family=sum(row.testable for row in rows),
        min_effect=(thresholds or Thresholds()).default,
    )


def compare_samples(
    base: Sequence[Sample],
    new: Sequence[Sample],
    thresholds: Thresholds | None = None,
    settings: tuple[Setting, Setting] | None = None,
    clocks: Mapping[int, float] | None = None,
) -> tuple[Row, ...]:
    """Return one row per measure that a side has, all judged as one family: see :mod:`traceview.analysis.statistics`.

    Without ``settings`` both sides count as runs of the same work on the same GPU. ``clocks`` says, by device, by which
    share the same kernels take longer on the new side: that much of compute is no change.
    """
    thresholds, clocks = thresholds or Thresholds(), clocks or {}
    settings = settings or (Setting(), Setting())
    sides = (_series(base), _series(new))
    expected = {place: clocks.get(place[0], 0.0) * _paced(place, sides[0]) for place in _ordered(sides)}
    pairs = [_pair(place, sides, thresholds, settings, shift) for place, shift in expected.items()]
    family = [index for index, pair in enumerate(pairs) if pair.could_change]
    p_values = statistics.adjusted([pairs[index].p for index in family])
    corrected = dict(zip(family, p_values, strict=True))
    several = any(device for device, _ in (*sides[0], *sides[1]))
    judged = [pair.judge(corrected.get(index), len(family), several) for index, pair in enumerate(pairs)]
    return _with_excuses(judged)


@dataclass(frozen=True)
class _Pair:
    """A measure of one device on both sides, before the family is known."""

    device: int
    key: Key
    reason: str | None
    base: Spread | None
    new: Spread | None
    difference: Difference | None
    min_effect: float
    range: float

    @property
    def measure(self) -> Measure:
        return MEASURES[self.key.measure]

    @property
    def p(self) -> float:
        return 1.0 if self.difference is None or self.difference.p is None else self.difference.p

    @property
    def could_change(self) -> bool:
        """Return whether any split of these samples could differ enough to count: only those share the error."""
        return self.reason is None and self.difference is not None and self.range >= self.min_effect

    def judge(self, p: float | None, family: int, several_devices: bool) -> Row:
        verdict, tested = SAME, p
        if self.reason is not None:
            verdict = CANNOT_TELL
        elif p is not None and self.difference is not None and self.base is not None and self.new is not None:
            counts = self.base.n, self.new.n
            few = statistics.too_few_for_test(*counts, family)
            tested = None if few else p
            clear = statistics.clears_spread(self.difference, *counts) if few else p <= statistics.ALPHA
            if clear and self.difference.left >= self.min_effect:
                verdict = self._direction(self.difference.shift)
        return Row(
            measure=self.key.measure,
            subject=self.key.subject,
            device=self.device if several_devices else None,
            verdict=verdict,
            reason=self.reason,
            base=self.base,
            new=self.new,
            difference=self.difference,
            min_effect=self.min_effect,
            p=tested,
            counts=not self.measure.detail,
            testable=self.could_change,
        )

    def _direction(self, shift: float) -> str:
        return IMPROVED if (shift > 0) == self.measure.higher_is_better else REGRESSED


_Series = dict[tuple[int, Key], list["Floats"]]


def _series(samples: Sequence[Sample]) -> _Series:
    """Return the values of each (device, key), one array per run."""
    found: dict[tuple[int, Key], dict[int, list[float]]] = {}
    for sample in samples:
        for key, value in sample.values.items():
            found.setdefault((sample.device, key), {}).setdefault(sample.run, []).append(value)
    return {place: [np.array(run, dtype=np.float64) for run in runs.values()] for place, runs in found.items()}


def _ordered(sides: tuple[_Series, _Series]) -> list[tuple[int, Key]]:
    """Return what either side has: by measure in their order, then by subject as met, then by device."""
    order = {name: index for index, name in enumerate(MEASURES)}
    met = dict.fromkeys((*sides[0], *sides[1]))
    subjects = {key.subject: index for index, (_, key) in reversed(list(enumerate(met)))}
    return sorted(met, key=lambda place: (order[place[1].measure], subjects[place[1].subject], place[0]))


def _paced(place: tuple[int, Key], base: _Series) -> float:
    """Return the base's compute, in ns, that a measure holds and that goes with the GPU's clocks."""
    runs = base.get((place[0], Key(MEASURES[place[1].measure].paced, place[1].subject)))
    return float(np.median(np.concatenate(runs))) if runs else 0.0


def _pair(
    place: tuple[int, Key],
    sides: tuple[_Series, _Series],
    thresholds: Thresholds,
    settings: tuple[Setting, Setting],
    expected: float,
) -> _Pair:
    device, key = place
    base, new = (side.get(place) for side in sides)
    before, after = (None if runs is None else statistics.describe(runs) for runs in (base, new))
    reason = _reason(key, (before, after), settings)
    if base is None or new is None:
        return _Pair(device, key, reason, before, after, None, 0.0, 0.0)
    values = np.concatenate([*base, *new])
    min_effect = _min_effect(place, sides[0], thresholds)
    return _Pair(
        device=device,
        key=key,
        reason=reason,
        base=before,
        new=after,
        difference=statistics.differ(base, new, min_effect, expected),
        min_effect=min_effect,
        range=float(np.ptp(values)),
    )


def _reason(key: Key, spreads: Sequence[Spread | None], settings: tuple[Setting, Setting]) -> str | None:
    """Return why a measure cannot be told apart, or None where it can be."""
    for other, spread in zip(("new", "base"), spreads, strict=True):
        if spread is None:
            return f"only the {other} side has it"
    needs = MEASURES[key.measure].needs
    for need, reason in incomparable(*settings, subject=key.subject).items():
        if need in needs:
            return reason
    counts = [spread.n for spread in spreads if spread is not None]
    if min(counts) < statistics.FEWEST:
        return f"{counts[0]} against {counts[1]} samples where it takes {statistics.FEWEST} a side, so capture more"
    return None


def _min_effect(place: tuple[int, Key], base: _Series, thresholds: Thresholds) -> float:
    """Return the smallest difference that counts, in the measure's unit."""
    device, key = place
    measure = MEASURES[key.measure]
    whole = base.get((device, Key("makespan_ns")), base[place]) if measure.part else base[place]
    share = thresholds.of(measure.name)
    floor = _FLOORS[measure.unit] if measure.floor is None else measure.floor
    return max(share * abs(float(np.median(np.concatenate(whole)))), floor)


def _with_excuses(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows; where the makespan improved, what paid for it no longer counts as a regression."""
    faster = {row.device for row in rows if row.measure == "makespan_ns" and row.verdict == IMPROVED}
    return tuple(
        replace(row, counts=False)
        if row.device in faster and row.verdict == REGRESSED and MEASURES[row.measure].excused
        else row
        for row in rows
    )


def _overall(rows: Sequence[Row]) -> str:
    verdicts = {row.verdict for row in rows if row.counts}
    if REGRESSED in verdicts:
        return REGRESSED
    if CANNOT_TELL in verdicts or not verdicts:
        return CANNOT_TELL
    return IMPROVED if IMPROVED in verdicts else SAME
