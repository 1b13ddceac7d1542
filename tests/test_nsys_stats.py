"""Totals equal those of ``nsys stats``, to the nanosecond and the byte: a tool that nobody here wrote.

It needs an nsys, which ``.ci/install_nsys.sh FOLDER`` gets without a GPU and ``TRACEVIEW_NSYS`` names. Two things are
not compared, since nsys does not have them: graphs that were traced as a whole, which it leaves out, and the pieces of
a batch, which it counts as one copy.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from nsys_stats import CALLS, KERNELS, NSYS, RANGES, REPORTS, SIZES, TIMES, add_up, needed, stats

import traceview
from traceview.cli import run
from traceview.model import CallKind, Direction, Kind
from traceview.nsys.schema import call_kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nsys_stats import Totals

    from traceview.model import Ints, Trace

SAMPLES = sorted((Path(__file__).parents[1] / "sample_traces").glob("*.sqlite"))
CORPUS = os.environ.get("TRACEVIEW_CORPUS")
FILES = SAMPLES + (sorted(Path(CORPUS).rglob("*.sqlite")) if CORPUS else [])

pytestmark = pytest.mark.skipif(
    not NSYS, reason="TRACEVIEW_NSYS names no nsys to compare with; .ci/install_nsys.sh FOLDER gets one"
)
every_capture = pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")


@every_capture
def test_what_is_read_adds_up_to_what_nsys_counts(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    theirs, ours = stats(path), totals(traceview.read(path))
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert theirs[CALLS]
    for name in REPORTS:
        assert ours[name] == theirs[name], name


@every_capture
def test_what_is_reported_adds_up_to_what_nsys_counts(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    theirs, made = stats(path), reported(path, capsys)
    groups = [(one["direction"], one["busy_ns"], one["bytes"]) for one in made["copies"]]
    moved = [(f"unified {one['direction']}", one["busy_ns"], one["bytes"], one["count"]) for one in made["migrations"]]
    copied = {name: (total, theirs[SIZES][name][0], count) for name, (total, count) in theirs[TIMES].items()}
    assert add_up(groups) == {name: sums[:2] for name, sums in copied.items() if name.upper() in Direction.__members__}
    assert add_up(moved) == {name: sums for name, sums in copied.items() if name.startswith("unified")}
    for api, (blocked, count, read_back) in blocking(made).items():
        total, calls = theirs[CALLS][api]
        assert count == calls, api
        # a scalar read-back is its copy's call and the wait together
        allowance = sum(theirs[CALLS][name][0] for name in theirs[CALLS] if "Memcpy" in name) if read_back else 0
        assert total <= blocked <= total + allowance, api


@pytest.mark.parametrize(
    "path", [path for path in FILES if NSYS and needed(path)], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_each_correction_is_needed(path: Path) -> None:
    helped, as_it_is = stats(path), stats(path, corrected=False)
    assert all(one.reason for one in needed(path))
    expected = {report for one in needed(path) for report in one.reports}
    assert {report for report in helped if helped[report] != as_it_is[report]} == expected


def test_a_wrong_total_would_be_seen() -> None:
    """The comparison itself: one nanosecond, one byte or one call more is another total."""
    theirs, trace = stats(SAMPLES[0]), traceview.read(SAMPLES[0])
    longer = trace.operations.end.copy()
    longer[trace.operations.kind == Kind.COPY] += 1
    ours = totals(replace(trace, operations=replace(trace.operations, end=longer)))
    assert {name for name in REPORTS if ours[name] != theirs[name]} == {TIMES, RANGES}


def totals(trace: Trace) -> dict[str, Totals]:
    """Return the sums of a trace's columns by the report of nsys that has them."""
    operations, migrations, calls, ones = trace.operations, trace.migrations, trace.calls, repeat(1)
    durations = operations.end - operations.start
    kernels = operations.kind == Kind.KERNEL
    moving = np.flatnonzero((operations.kind == Kind.COPY) | (operations.kind == Kind.MEMSET))
    words = [_word(*pair) for pair in zip(operations.kind[moving], operations.direction[moving], strict=True)]
    words += [f"unified {_word(Kind.COPY, direction)}" for direction in migrations.direction]
    times = [*durations[moving], *(migrations.end - migrations.start)]
    sizes = [*operations.n_bytes[moving], *migrations.n_bytes]
    return {
        KERNELS: add_up(zip(_names(trace, operations.name[kernels]), durations[kernels], ones, strict=False)),
        TIMES: add_up(zip(words, times, ones, strict=False)),
        SIZES: add_up(zip(words, sizes, ones, strict=False)),
        CALLS: add_up(zip(_names(trace, calls.name), calls.end - calls.start, ones, strict=False)),
        RANGES: add_up(_projected(trace)),
    }


def _names(trace: Trace, indices: Ints) -> list[str]:
    return [trace.names[index] for index in indices]


def _word(kind: int, direction: int) -> str:
    return "memset" if kind == Kind.MEMSET else Direction(direction).name.lower()


def _projected(trace: Trace) -> Iterator[tuple[Any, ...]]:
    """Yield name, projected time, time on the host, 1 and the launches of each range that launched something.

    A range's projection lasts from the first start to the last end of what calls inside it launched.
    """
    operations, calls, ranges = trace.operations, trace.calls, trace.ranges
    own = np.flatnonzero((operations.launch >= 0) & (operations.kind != Kind.GRAPH))
    launched, place = np.unique(operations.launch[own], return_inverse=True)
    first = np.full(len(launched), np.iinfo(np.int64).max)
    last = np.full(len(launched), np.iinfo(np.int64).min)
    np.minimum.at(first, place, operations.start[own])
    np.maximum.at(last, place, operations.end[own])
    for row in range(len(ranges)):
        low, high = np.searchsorted(calls.start[launched], (ranges.start[row], ranges.end[row] + 1))
        some = launched[low:high]
        inside = low + np.flatnonzero((calls.thread[some] == ranges.thread[row]) & (calls.end[some] <= ranges.end[row]))
        if len(inside):
            name, domain = trace.names[ranges.name[row]], ranges.domain[row]
            label = name if domain < 0 else f"{trace.names[domain]}:{name}"
            projected = last[inside].max() - first[inside].min()
            yield label, projected, ranges.end[row] - ranges.start[row], 1, len(inside)


def reported(path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stopped:
        run(["report", str(path), "--format", "json"])
    assert stopped.value.code == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def blocking(made: dict[str, Any]) -> Totals:
    """Return time blocked, calls, and how many are read-backs, of each API whose calls all block by its name."""
    rows = [(one["api"], one["blocked_ns"], one["count"], one["kind"] == "scalar_readback") for one in made["syncs"]]
    return add_up(row for row in rows if call_kind(row[0]) != CallKind.ASYNC_COPY)
