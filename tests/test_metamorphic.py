"""Captures written in another way: the report stays as it is, but for what must change, which each test names.

Nobody has to know the right answer for that: a capture and its twin check each other.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import rewriting
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nsys_stats import add_up
from plain_trace import everything, rows
from rewriting import SHIFT_NS, STRANGER, STRANGER_DEVICE, rewrite
from tied_scenes import tied_scenes
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview.analysis.report import ReportOptions, build_report
from traceview.analysis.whatif import EDITS
from traceview.render.json import as_dict

if TYPE_CHECKING:
    from collections.abc import Callable

    from rewriting import Change
    from trace_builder import TraceBuilder as Builder

    from traceview.model import Trace

    Json = Any

FOLDER = Path(__file__).parents[1] / "sample_traces"
SAMPLES = ("healthy", "graph_nodes", "item_stacks", "metrics", "no_names", "small_copy_first", "storage", "thread")
OTHER_NUMBERS = (
    rewriting.renumber_contexts,
    rewriting.renumber_threads,
    rewriting.renumber_correlations,
    rewriting.renumber_events,
    rewriting.renumber_strings,
)
OTHER_ORDERS = (rewriting.shuffle_rows, rewriting.reorder_tables)
UNITED = ("forwards", "overlap", "exposed_copy", "copies", "migrations", "lanes", "storage")
"""Sections of the report whose rows belong to one process."""
ADDED = {
    "copies": ("pieces", "bytes", "busy_ns"),
    "overlap": ("busy_a_ns", "busy_b_ns", "overlap_ns"),
    "exposed_copy": ("exposed_ns",),
}
"""Sections that speak of streams, and which of their columns add up where forwards follow each other."""
PAIRS = (("healthy", "item"), ("healthy", "sm"), ("storage", "storage_direct"), ("no_names", "no_names"))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that examples write again and again."""
    return tmp_path_factory.mktemp("ties") / "plain.sqlite"


each_sample = pytest.mark.parametrize("name", SAMPLES)


def reported(path: Path, **selection: Any) -> Json:
    """Return the JSON report with everything that can be asked for; where the file lies is no part of the capture."""
    trace = traceview.read(path, metrics=True, **selection)
    made = json.loads(json.dumps(as_dict(build_report(trace, ReportOptions(what_if=tuple(EDITS))))))
    assert made["trace"].pop("path") == str(path)
    return made


def both(name: str, folder: Path, *changes: Change) -> tuple[Json, Json]:
    """Return the report of a sample as it is and of its changed copy."""
    sample = FOLDER / f"{name}.sqlite"
    return json.loads(_kept(sample)), reported(rewrite(sample, folder / "twin.sqlite", *changes))


@cache
def _kept(sample: Path) -> str:
    return json.dumps(reported(sample))


def mapped(value: Json, change: Callable[[str | None, Any], Any], key: str | None = None) -> Json:
    """Return the same JSON with each number and string replaced by what ``change`` makes of it, given its key."""
    if isinstance(value, dict):
        return {name: mapped(inner, change, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [mapped(inner, change, key) for inner in value]
    return change(key, value)


def unordered(made: Json) -> Json:
    """Return a report whose lists and pairs stand in an order of their own instead of that of ids."""
    pairs = [_sorted_pair(pair) for pair in made["overlap"]]
    return {
        name: sorted(rows, key=json.dumps) if isinstance(rows, list) else rows
        for name, rows in {**made, "overlap": pairs}.items()
    }


def _sorted_pair(pair: Json) -> Json:
    a, b = sorted(((pair["a"], pair["busy_a_ns"]), (pair["b"], pair["busy_b_ns"])))
    return pair | {"a": a[0], "busy_a_ns": a[1], "b": b[0], "busy_b_ns": b[1]}


@each_sample
@pytest.mark.parametrize("changes", [OTHER_NUMBERS, OTHER_ORDERS], ids=["ids", "order"])
def test_other_ids_and_another_order_change_nothing(name: str, changes: tuple[Change, ...], tmp_path: Path) -> None:
    before, after = both(name, tmp_path, *changes)
    assert after == before


@each_sample
def test_a_later_capture_differs_in_its_moments_alone(name: str, tmp_path: Path) -> None:
    before, after = both(name, tmp_path, rewriting.shift_times)
    moments = ("start_ns", "t0_ns", "t1_ns")
    assert after == mapped(before, lambda key, value: value + SHIFT_NS if key in moments else value)


@each_sample
def test_other_stream_numbers_differ_in_labels_alone(name: str, tmp_path: Path) -> None:
    before, after = both(name, tmp_path, rewriting.renumber_streams)

    def relabelled(_: str | None, value: Any) -> Any:
        new = rewriting.renumbered_stream
        return _label(value, lambda process, device, stream: (process, device, new(stream)))

    assert unordered(after) == unordered(mapped(before, relabelled))


@each_sample
def test_other_process_numbers_differ_in_processes_alone(name: str, tmp_path: Path) -> None:
    before, after = both(name, tmp_path, rewriting.renumber_processes)

    def renumbered(key: str | None, value: Any) -> Any:
        new = rewriting.renumbered_process
        if key in ("process", "processes"):
            return new(value)
        return _label(value, lambda process, device, stream: (new(process), device, stream))

    assert unordered(after) == unordered(mapped(before, renumbered))


def _label(value: Any, change: Callable[[int, int, int], tuple[int, ...]]) -> Any:
    """Return a value with each stream's label in it (``pid/dev/stream``) changed."""
    if not isinstance(value, str):
        return value
    return re.sub(r"\b(\d+)/(\d+)/(\d+)\b", lambda found: "/".join(map(str, change(*map(int, found.groups())))), value)


@each_sample
def test_a_strange_process_adds_rows_of_its_own(name: str, tmp_path: Path) -> None:
    before, after = both(name, tmp_path, rewriting.add_stranger)
    process = before["trace"]["processes"]
    assert reported(tmp_path / "twin.sqlite", process=process[0]) == before

    theirs = {"processes": [STRANGER], "devices": [{"id": STRANGER_DEVICE, "name": None}]}
    for key, more in theirs.items():
        found = after["trace"].pop(key)
        assert sorted(found, key=str) == sorted(before["trace"].pop(key) + more, key=str)
    lists = {name: rows for name, rows in after.items() if isinstance(rows, list)}
    own = {name: [row for row in rows if not _is_strange(row)] for name, rows in lists.items()}
    assert {"copies", "overlap"} <= {name for name, rows in lists.items() if len(own[name]) < len(rows)}
    # blocking calls outside of forwards are listed without their process
    own["syncs"] = [row for row in own["syncs"] if row["forward"] is not None]
    before["syncs"] = [row for row in before["syncs"] if row["forward"] is not None]
    assert after | own == before


def _is_strange(row: Json) -> bool:
    return row.get("process") == STRANGER or str(row.get("stream")).startswith(f"{STRANGER}/")


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_two_processes_in_one_capture_are_the_union_of_their_captures(names: tuple[str, str], tmp_path: Path) -> None:
    first, second = (
        rewrite(FOLDER / f"{name}.sqlite", tmp_path / f"{place}.sqlite", rewriting.forget_slimming)
        for place, name in enumerate(names)
    )
    process, later_ns = 900, 10_000_000_000
    merge = rewriting.appended(second, process=process, later_ns=later_ns)
    one, other, union = reported(first), reported(second), reported(rewrite(first, tmp_path / "union.sqlite", merge))
    [old], forwards = other["trace"]["processes"], len({forward["index"] for forward in one["forwards"]})

    def moved(key: str | None, value: Any) -> Any:
        if key == "process":
            return process
        if key in ("t0_ns", "t1_ns"):
            return value + later_ns
        if key in ("index", "forward", "scope") and isinstance(value, int):
            return value + forwards
        return re.sub(rf"^{old}/", f"{process}/", value) if isinstance(value, str) else value

    other = mapped(other, moved)
    for section in UNITED:
        assert sorted(union[section], key=json.dumps) == sorted(one[section] + other[section], key=json.dumps), section
    assert calls(union) == calls(one, other)
    assert union["summary"]["forwards"] == one["summary"]["forwards"] + other["summary"]["forwards"]


def calls(*reports: Json) -> dict[str, tuple[int, ...]]:
    """Return count, ns blocked and cost of blocking calls by all else: those outside of forwards go by no process."""
    numbers = ("count", "blocked_ns", "cost_ns")
    rows = [row for made in reports for row in made["syncs"]]
    keys = [json.dumps({name: value for name, value in row.items() if name not in numbers}) for row in rows]
    return add_up((key, *(row.get(name, 0) for name in numbers)) for key, row in zip(keys, rows, strict=True))


def one_forward(builder: Builder, number: int) -> Builder:
    """Add a forward of two layers; each number has other times and sizes."""
    start = 10_000 * number
    loads = [[(start + 100, start + 200 + number)], [(start + 300, start + 420), (start + 430, start + 470 + number)]]
    computes = [[(start + 210 + number, start + 330)], [(start + 500, start + 620 + 7 * number)]]
    layered_forward(builder, start=start, loads=loads, computes=computes, number=number, n_bytes=4096 + number)
    return builder.stream_sync(stream=7, call=(start + 150, start + 700))


def test_two_forwards_in_one_capture_are_the_union_of_their_captures(tmp_path: Path) -> None:
    """One process and its streams: what is listed by stream adds up, what is listed by forward stands side by side."""
    parts = [reported(one_forward(TraceBuilder(), number).write(tmp_path / "part.sqlite")) for number in (0, 1)]
    union = reported(one_forward(one_forward(TraceBuilder(), 0), 1).write(tmp_path / "union.sqlite"))
    parts[1] = mapped(parts[1], lambda key, value: 1 if key in ("index", "forward", "scope") and value == 0 else value)
    # the first of several forwards is warm-up where no name says which is
    assert union["forwards"] == [parts[0]["forwards"][0] | {"warmup": True}, parts[1]["forwards"][0]]
    for section, sums in ADDED.items():
        assert added(section, sums, union) == added(section, sums, *parts), section
    assert calls(union) == calls(*parts)


def added(section: str, sums: tuple[str, ...], *reports: Json) -> dict[str, tuple[int, ...]]:
    """Return the sums of some columns of a section by what its rows are about: a forward or the whole, and streams."""
    about = ("scope", "process", "device", "a", "b", "class", "direction", "memory", "stream")
    rows = [row for made in reports for row in made[section]]
    keys = [json.dumps([row.get(name) for name in about]) for row in rows]
    return add_up((key, *(row[name] for name in sums)) for key, row in zip(keys, rows, strict=True))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(builder=tied_scenes(), seed=st.integers(0, 1 << 30))
def test_a_capture_full_of_ties_reads_the_same_in_any_order(builder: Builder, seed: int, path: Path) -> None:
    """Ids are left alone: of calls and operations that agree in time, ids are all there is to tell which came first."""
    plain = builder.write(path)
    twin = rewrite(plain, path.with_name("twin.sqlite"), *OTHER_ORDERS, seed=seed)
    before, after = traceview.read(plain, metrics=True), traceview.read(twin, metrics=True)
    assert everything(after) == everything(before)
    assert counters(after) == counters(before)
    assert replace(after.capture, path=plain) == before.capture
    assert reported(twin) == reported(plain)


def counters(trace: Trace) -> list[Any]:
    """Return the samples of all links and NICs as plain rows."""
    links = [(one.device, rows(one.received), rows(one.sent)) for one in trace.links or ()]
    return [*links, *((one.nic, one.port, one.direction, rows(one.samples)) for one in trace.nics)]
