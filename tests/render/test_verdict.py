from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from report_samples import EMPTY, MS, SAMPLES, accounting, faulty, forward, healthy, measures, without_forwards

from traceview.render.layout import layout
from traceview.render.tables import CODE
from traceview.render.verdict import PHRASES, median_forward, verdict
from traceview.report import CATEGORIES, Report, Summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.render.tables import Line


def words(lines: Sequence[Line]) -> str:
    """Return the lines as they are read."""
    return "\n".join("".join(f"`{part.text}`" if part.role == CODE else part.text for part in line) for line in lines)


def judged(account: dict[str, int], **values: Any) -> str:
    """Return the verdict on one measured forward."""
    only = forward(1, measures(account, **values))
    return words(verdict(replace(healthy(), forwards=(only,), summary=Summary(1, only.measures))))


def test_a_load_that_hides_is_said_to_hide() -> None:
    assert words(verdict(healthy())).startswith("The load hides behind compute: 11.8 ms a forward, 98 %")


def test_loads_longer_than_compute_are_the_limit_and_not_a_fault() -> None:
    said = judged(accounting(compute=5 * MS, load_copy=10 * MS), ideal_ns=15 * MS, pipeline_efficiency=1.0)
    assert said.startswith("The loads set the pace: 15 ms a forward, 100 % of the ideal 15 ms.")
    assert "Loads take 9.72 ms, compute 5 ms" in said


def test_a_slow_forward_names_its_costliest_finding() -> None:
    said = words(verdict(faulty()))
    assert said.startswith("A forward takes 79.74 ms: 59.1 ms (74 %) is pageable_source, ")
    assert "Also host_bound 421 µs." in said
    assert "ideal" not in said


def test_the_ideal_is_told_where_the_loads_are_not_at_fault() -> None:
    found = [finding for finding in faulty().findings if finding.id == "host_bound"]
    said = words(verdict(replace(faulty(), findings=tuple(found))))
    assert said.startswith("A forward takes 79.74 ms: 421 µs (0.5 %) is host_bound, ")
    assert "With these loads and this compute 63.71 ms is ideal: median efficiency 80 %." in said


def test_a_slow_forward_without_findings_names_its_largest_loss() -> None:
    said = words(verdict(replace(faulty(), findings=())))
    assert said.startswith("A forward takes 79.74 ms where 63.71 ms is ideal: 80 % efficiency.")
    assert "Largest loss: implicit_sync, 59.1 ms (74 %)" in said


def test_what_even_the_ideal_forward_waits_for_its_loads_is_no_loss() -> None:
    said = judged(
        accounting(compute=5 * MS, load_copy=10 * MS, host=3 * MS), ideal_ns=15 * MS, pipeline_efficiency=15 / 18
    )
    assert "Largest loss: host, 3 ms (17 %)" in said


def test_without_a_load_nothing_is_said_to_hide() -> None:
    said = judged(accounting(compute=10 * MS, launch=MS), load_busy_ns=0, ideal_ns=10 * MS)
    assert said.startswith("A forward takes 11 ms, 91 % of it under compute.")
    assert "No load was found in it" in said
    assert "hides" not in said


def test_without_forwards_it_says_what_would_give_one_and_what_is_known_without() -> None:
    said = words(verdict(without_forwards()))
    assert said.startswith("No forward in this trace")
    assert "`forward 0`" in said
    assert "GPU 1 of process 41: 2.5 GiB copied host to device in 460 ms, 0 % of that time under compute." in said


def test_only_warm_up_is_not_measured() -> None:
    assert "The only forward is warm-up" in words(verdict(replace(healthy(), forwards=healthy().forwards[:1])))


def test_an_empty_trace_has_nothing_to_judge() -> None:
    assert words(verdict(EMPTY)).startswith("Nothing to judge")


def test_the_median_forward_is_the_lower_of_the_two_in_the_middle() -> None:
    forwards = [forward(index, measures(accounting(compute=ms * MS))) for index, ms in enumerate((4, 1, 3, 2))]
    chosen = median_forward(forwards)
    assert chosen is not None
    assert chosen.measures.makespan_ns == 2 * MS
    assert median_forward([]) is None


def accidental(report: Report) -> str:
    return words(layout(replace(report, findings=())).verdict)


def test_accidental_calls_that_cost_are_in_the_verdict_unless_findings_say_it() -> None:
    assert "8 accidental blocking calls a forward cost 59.1 ms (74 %), most of it implicit d2h by" in accidental(
        faulty()
    )
    assert "accidental" not in words(layout(faulty()).verdict)


def test_accidental_calls_that_cost_nothing_are_not_in_the_verdict() -> None:
    free = tuple(replace(sync, cost_ns=0) for sync in faulty().syncs)
    assert "accidental" not in accidental(replace(faulty(), syncs=free))


def test_every_category_has_a_phrase() -> None:
    assert tuple(PHRASES) == CATEGORIES


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_report_has_a_verdict_of_one_to_five_lines(sample: str) -> None:
    assert 1 <= len(layout(SAMPLES[sample]()).verdict) <= 5
