"""Limits read what the report says, and where it says nothing they are not met but unknown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest

from traceview.analysis.budget import BROKEN, CANNOT_JUDGE, PASS, causes, judge, worst
from traceview.analysis.budget_file import parse_rules
from traceview.analysis.budget_quantities import KNOWN_KEYS, LIMIT_KEYS
from traceview.analysis.report import build_report
from traceview.reading import read
from traceview.report import CATEGORIES, Finding, Report

SAMPLES = Path(__file__).parents[2] / "sample_traces"


@pytest.fixture(scope="module")
def healthy() -> Report:
    return build_report(read(SAMPLES / "healthy.sqlite"))


@pytest.fixture(scope="module")
def item() -> Report:
    return build_report(read(SAMPLES / "item.sqlite"))


def verdicts(report: Report, **rules: object) -> list[str]:
    return [outcome.verdict for outcome in judge(report, parse_rules(rules))]


def test_every_limit_can_be_read_from_a_complete_capture(healthy: Report) -> None:
    unknown = [key for key in KNOWN_KEYS if LIMIT_KEYS[key].read(healthy) is None]
    assert unknown == []


def test_values_are_those_of_the_report(healthy: Report, item: Report) -> None:
    measured = [one for one in healthy.forwards if not one.warmup]
    summary = healthy.summary
    assert summary is not None
    assert LIMIT_KEYS["makespan_ms"].read(healthy) == summary.measures.makespan_ns / 1e6
    assert LIMIT_KEYS["makespan_us"].read(healthy) == summary.measures.makespan_ns / 1e3
    assert LIMIT_KEYS["load_bytes"].read(healthy) == 512 << 20
    assert LIMIT_KEYS["load_gib"].read(healthy) == 0.5
    for category in CATEGORIES:
        expected = median(one.measures.accounting[category] for one in measured)
        assert LIMIT_KEYS[f"{category}_ns"].read(healthy) == pytest.approx(expected, abs=1)
    assert LIMIT_KEYS["h2d_pieces_per_layer"].read(healthy) == 1
    assert LIMIT_KEYS["h2d_pieces"].read(healthy) == 8
    counts = {key: LIMIT_KEYS[key].read(item) for key in ("accidental_syncs", "scalar_readbacks", "implicit_syncs")}
    layers = len(item.forwards[-1].layers)
    assert counts == {"accidental_syncs": layers - 1, "scalar_readbacks": layers - 1, "implicit_syncs": 0}
    indices = [one.index for one in item.forwards if not one.warmup]
    costs = [sum(sync.cost_ns or 0 for sync in item.syncs if sync.forward == index) for index in indices]
    assert LIMIT_KEYS["sync_cost_ns"].read(item) == median(costs) > 0


def test_a_limit_holds_or_is_broken(healthy: Report) -> None:
    assert verdicts(healthy, makespan_ms="<= 20", pipeline_efficiency="> 0.99", h2d_pieces="== 8") == [
        PASS,
        BROKEN,
        PASS,
    ]


def test_a_measure_that_the_trace_lacks_cannot_be_judged(healthy: Report) -> None:
    warm = replace(healthy, summary=None, forwards=tuple(replace(one, warmup=True) for one in healthy.forwards))
    for key in KNOWN_KEYS:
        expected = PASS if key == "pageable_bytes" else CANNOT_JUDGE
        assert verdicts(warm, **{key: ">= 0"}) == [expected], key
    (outcome,) = judge(warm, parse_rules({"makespan_ms": "<= 1"}))
    assert "--warmup 0" in outcome.about
    without_calls = replace(healthy, trace=replace(healthy.trace, missing=("api_calls",)))
    assert verdicts(without_calls, accidental_syncs="== 0", sync_cost_ms="<= 1") == [CANNOT_JUDGE] * 2
    without_copies = replace(healthy, trace=replace(healthy.trace, missing=("copies",)))
    assert verdicts(without_copies, pageable_bytes="== 0") == [CANNOT_JUDGE]


def test_findings_can_be_forbidden_by_name_and_severity_or_expected(item: Report) -> None:
    assert verdicts(item, findings=["!scalar_readback"]) == [BROKEN]
    assert verdicts(item, findings=["!high", "!medium", "!any"]) == [PASS, BROKEN, BROKEN]
    assert verdicts(item, findings=["scalar_readback", "host_bound"]) == [PASS, BROKEN]


def test_the_absence_of_a_finding_that_could_not_appear_proves_nothing(healthy: Report) -> None:
    assert verdicts(healthy, findings=["!inbound_contention"]) == [CANNOT_JUDGE]
    without_calls = replace(healthy, trace=replace(healthy.trace, missing=("api_calls",)))
    assert verdicts(without_calls, findings=["!scalar_readback", "!pageable_source", "!high"]) == [
        CANNOT_JUDGE,
        PASS,
        CANNOT_JUDGE,
    ]


def test_a_broken_count_names_the_costliest_call_that_has_a_stack(item: Report) -> None:
    frames = (".item()", "decode (/app/engine/sched.py:214)")
    syncs = tuple(replace(sync, where=frames) if sync.accidental else sync for sync in item.syncs)
    with_stacks = replace(item, syncs=syncs)
    for rules in ({"accidental_syncs": "== 0"}, {"findings": ["!scalar_readback"]}):
        (outcome,) = judge(with_stacks, parse_rules(rules))
        assert outcome.where == frames


def test_every_finding_of_a_forbidden_severity_is_an_outcome_of_its_own(healthy: Report) -> None:
    found = tuple(Finding(name, "high", 10, 0.5, "accounting", "m", (), "a") for name in ("host_bound", "same_stream"))
    outcomes = judge(replace(healthy, findings=found), parse_rules({"findings": ["!high"]}))
    assert [(one.id, one.verdict) for one in outcomes] == [("host_bound", BROKEN), ("same_stream", BROKEN)]


def test_findings_that_no_broken_rule_names_may_be_its_cause(item: Report) -> None:
    def named(**rules: object) -> list[str]:
        return [cause.id for cause in causes(item, judge(item, parse_rules(rules)))]

    assert named(accidental_syncs="== 0") == ["scalar_readback"]
    assert named(accidental_syncs="== 0", findings=["!scalar_readback"]) == []
    assert named(accidental_syncs="<= 7") == []


def test_a_broken_limit_is_told_with_the_digits_that_tell_it_from_the_bound(healthy: Report) -> None:
    def told(**rules: object) -> str:
        (outcome,) = judge(healthy, parse_rules(rules))
        return outcome.message

    assert healthy.summary is not None
    makespan_ns = healthy.summary.measures.makespan_ns
    assert told(makespan_ms=f"<= {(makespan_ns - 1) / 1e6}").startswith(f"makespan_ms is {makespan_ns / 1e6:.12g}, ")
    assert told(makespan_us="<= 1").startswith(f"makespan_us is {makespan_ns / 1e3:,.0f}, to be <= 1")


@pytest.mark.parametrize(
    ("found", "expected"),
    [([], PASS), ([PASS], PASS), ([PASS, CANNOT_JUDGE], CANNOT_JUDGE), ([CANNOT_JUDGE, BROKEN, PASS], BROKEN)],
)
def test_the_worst_verdict_is_that_of_the_whole(found: list[str], expected: str) -> None:
    assert worst(found) == expected
