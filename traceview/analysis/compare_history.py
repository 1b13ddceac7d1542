"""Follows one measure over saved runs, each compared with the one before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from traceview.analysis.compare import compare_samples
from traceview.analysis.compare_clocks import pace_change
from traceview.analysis.compare_measures import Key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.compare import Row
    from traceview.analysis.compare_clocks import Paces
    from traceview.analysis.compare_measures import Sample
    from traceview.analysis.compare_setting import Setting


class SavedRun(Protocol):
    """What is known of a run."""

    @property
    def label(self) -> str:
        """Return what the run is."""

    @property
    def commit(self) -> str | None:
        """Return the commit that was run."""

    @property
    def trace(self) -> str:
        """Return the trace's file name."""

    @property
    def saved_at(self) -> str:
        """Return when it was saved, ISO 8601."""

    @property
    def setting(self) -> Setting:
        """Return what was run on what."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return its forwards."""

    @property
    def paces(self) -> Paces:
        """Return how long its kernels take."""


@dataclass(frozen=True)
class Point:
    """A measure in one run, and how it differs from the run before."""

    run: SavedRun
    row: Row
    """the run before as base, this one as new; for the first, itself on both sides"""


@dataclass(frozen=True)
class Followed:
    """A measure over the runs that have it, the oldest first."""

    measure: str
    subject: str
    points: tuple[Point, ...]
    overall: Row | None
    """the first run as base, the last as new; None for fewer than two"""


def follow(runs: Sequence[SavedRun], measure: str, subject: str = "") -> Followed:
    """Return how a measure went; of several devices, that of the first."""
    key = Key(measure, subject)
    having = [run for run in runs if any(key in sample.values for sample in run.samples)]
    points = tuple(
        Point(run, _row(before, run, key)) for before, run in zip([*having[:1], *having], having, strict=False)
    )
    overall = _row(having[0], having[-1], key) if len(having) > 1 else None
    return Followed(measure, subject, points, overall)


def _row(base: SavedRun, new: SavedRun, key: Key) -> Row:
    before, after = ([sample for sample in run.samples if sample.device == 0] for run in (base, new))
    clocks = {0: pace_change(base.paces.get(0, {}), new.paces.get(0, {}))}
    rows = compare_samples(before, after, settings=(base.setting, new.setting), clocks=clocks)
    return next(row for row in rows if (row.measure, row.subject) == key)
