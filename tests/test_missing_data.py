"""Captures that lack a kind of data: what rests on it is abstained from, with a reason and a remedy."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

import traceview
from traceview.analysis.forwards import ForwardOptions
from traceview.analysis.report import ReportOptions, build_report
from traceview.render.layout import layout
from traceview.report import Report

SAMPLES = Path(__file__).parents[1] / "sample_traces"
KERNELS, COPIES, CALLS, SYNCS, NVTX = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_RUNTIME",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    "NVTX_EVENTS",
)


def without(folder: Path, name: str, *statements: str) -> Report:
    """Return the report of a sample from which something was taken."""
    path = folder / "trace.sqlite"
    shutil.copy(SAMPLES / f"{name}.sqlite", path)
    path.chmod(0o644)
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    return build_report(traceview.read(path))


def headline(report: Report) -> str:
    return " ".join("".join(part.text for part in line) for line in layout(report).verdict)


def told(report: Report, *words: str) -> bool:
    """Return whether something is abstained from with all these words in its reason, and with a remedy."""
    return any(all(word in one.reason for word in words) and one.fix for one in report.abstained)


@pytest.mark.parametrize(
    "statement",
    [f"DROP TABLE {KERNELS}", f"UPDATE {KERNELS} SET correlationId = NULL"],
    ids=["no kernels", "kernels without a launch"],
)
def test_without_its_compute_no_forward_is_measured(statement: str, tmp_path: Path) -> None:
    """The copies alone would make a forward of nothing but waiting, bound by the link."""
    report = without(tmp_path, "healthy", statement)
    assert (report.forwards, report.summary) == ((), None)
    assert "load_bound" not in [finding.id for finding in report.findings]
    assert told(report, "no kernels") or told(report, "have no launch", "is left out")


def test_the_verdict_tells_what_was_not_captured(tmp_path: Path) -> None:
    assert "It holds no kernels" in headline(without(tmp_path, "healthy", f"DROP TABLE {KERNELS}"))
    report = without(tmp_path, "healthy", f"DROP TABLE {CALLS}")
    assert "It holds no API calls" in headline(report)
    assert report.syncs == ()
    assert not told(report, "no range is named")


def test_without_copies_nothing_is_said_of_loads(tmp_path: Path) -> None:
    report = without(tmp_path, "healthy", f"DROP TABLE {COPIES}")
    assert report.summary is not None
    measures = report.summary.measures
    loads = (measures.load_busy_ns, measures.overlap_ns, measures.load_pieces, measures.load_bytes, measures.hidden)
    assert loads == (None,) * 5
    assert "The capture holds no copies" in headline(report)
    assert told(report, "no copies")


@pytest.mark.parametrize("kinds", ["7", "NULL"])
def test_without_memory_kinds_slow_loads_are_not_explained(kinds: str, tmp_path: Path) -> None:
    report = without(tmp_path, "pageable", f"UPDATE {COPIES} SET srcKind = {kinds}, dstKind = {kinds}")
    assert not {"pageable_source", "load_bound"} & {finding.id for finding in report.findings}
    assert told(report, "does not tell the kind of memory")
    assert {group.memory for group in report.copies} == {"unknown"}


def test_without_names_and_waits_there_are_no_layers(tmp_path: Path) -> None:
    report = without(tmp_path, "healthy", f"DROP TABLE {NVTX}", f"DROP TABLE {SYNCS}")
    assert report.forwards == ()
    assert told(report, "no nvtx")
    assert "layers by events, loads submitted by another thread" in [one.measure for one in report.abstained]


def test_layers_without_a_forward_can_be_had_from_events(tmp_path: Path) -> None:
    text = "COALESCE(text, (SELECT value FROM StringIds WHERE id = textId))"
    report = without(tmp_path, "healthy", f"DELETE FROM {NVTX} WHERE {text} LIKE 'forward%'")
    assert report.forwards == ()
    assert any("--layers-from events" in one.fix for one in report.abstained)
    options = ReportOptions(forwards=ForwardOptions(layers_from="events"))
    found = build_report(traceview.read(tmp_path / "trace.sqlite"), options).forwards
    assert [len(forward.layers) for forward in found] == [8] * 4


def test_a_remedy_is_not_said_twice(tmp_path: Path) -> None:
    report = without(tmp_path, "healthy", f"DROP TABLE {SYNCS}", "DROP TABLE CUPTI_ACTIVITY_KIND_CUDA_EVENT")
    fixes = [one.fix for one in report.abstained]
    assert [fix for fix in fixes if fix.count("nsys profile --trace=cuda,nvtx") > 1] == []


def test_calls_without_a_stack_are_counted_where_others_have_one(tmp_path: Path) -> None:
    """A stack is a row of its own; the profiler can be told to take those of some calls only."""
    stackless = f"DELETE FROM {CALLS} WHERE eventClass = 67 AND correlationId % 3 = 0"
    assert told(without(tmp_path, "item_stacks", stackless), "have no stack in the capture")
    whole = build_report(traceview.read(SAMPLES / "item_stacks.sqlite"))
    assert all(sync.where for sync in whole.syncs if sync.accidental)


def test_passes_of_a_number_of_layers_share_the_work_of_a_forward_that_has_more() -> None:
    """Four layers a pass of a trace with eight: the second pass is no copy of the first, and none gets lost."""
    trace = traceview.read(SAMPLES / "no_names.sqlite")
    whole = build_report(trace).forwards
    options = ReportOptions(forwards=ForwardOptions(layers_per_forward=4))
    halves = build_report(trace, options).forwards
    assert [len(forward.layers) for forward in halves] == [4] * (2 * len(whole))
    assert sum(one.measures.load_bytes or 0 for one in halves) == sum(one.measures.load_bytes or 0 for one in whole)
    busy = [sum(one.measures.compute_busy_ns for one in found) for found in (halves, whole)]
    assert busy[0] == busy[1]
    assert all(after.t1_ns > before.t1_ns for before, after in pairwise(halves))
