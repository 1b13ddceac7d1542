"""Guards against a reader or an analysis that became slow: ratios of CPU times taken in turn, never seconds."""

from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import pytest

from traceview.analysis.report import build_report
from traceview.reading import read

HERE = Path(__file__).parent
SAMPLES = HERE.parents[1] / "sample_traces"

MOST_READING = 3.4
"""Reading an export over SQLite stepping over the same columns, in CPU time of all threads: 2.2 as it is."""

MOST_ANALYSING = 2.6
"""All analyses over the same, where copies are many and forwards few: 1.4 to 1.7 as it is."""

MOST_FORWARD = 4.5
"""Analysing a forward of 8 layers over stepping over a thousand rows: 2.8 as it is."""

MOST_GROWTH = 1.3
"""Cost per row of a trace four times as long: 1 where it is linear, 2 and more where a forward costs by the trace."""


def load(name: str):
    """Import a script that lies beside this file."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Return the same forwards 10 and 40 times over."""
    return [multiplied(tmp_path_factory, "healthy", times) for times in (10, 40)]


@pytest.fixture(scope="module")
def many_copies(tmp_path_factory):
    return multiplied(tmp_path_factory, "fragmented", 20)


def multiplied(tmp_path_factory, sample, times):
    folder = tmp_path_factory.mktemp("bench")
    return load("multiply").multiply(SAMPLES / f"{sample}.sqlite", folder / f"{sample}.sqlite", times)


def cpu(task) -> float:
    begin = time.process_time()
    task()
    return time.process_time() - begin


def test_the_generator_keeps_the_structure(traces):
    one, many = read(SAMPLES / "healthy.sqlite"), read(traces[0])
    assert len(many.operations) == 10 * len(one.operations)
    assert len(many.calls) == 10 * len(one.calls)
    assert (many.operations.launch >= 0).sum() == 10 * (one.operations.launch >= 0).sum()
    report, reports = build_report(one), build_report(many)
    assert len(reports.forwards) == 10 * len(report.forwards)
    assert {forward.measures.accounting["compute"] for forward in reports.forwards} == {
        forward.measures.accounting["compute"] for forward in report.forwards
    }


def over_floor(path, task, rounds=5) -> float:
    """Return the CPU time of a task over that of the floor, taken in turn; other work on the machine only ever adds."""
    measure_floor = load("floor").measure_floor
    pairs = [(cpu(task), measure_floor(path)[1]) for _ in range(rounds)]
    return min(one for one, _ in pairs) / min(floor for _, floor in pairs)


def test_reading_costs_little_more_than_what_sqlite_needs_to_step_over_the_rows(many_copies):
    assert over_floor(many_copies, lambda: read(many_copies)) < MOST_READING


def test_analysing_costs_about_as_much(many_copies):
    trace = read(many_copies)
    assert over_floor(many_copies, lambda: build_report(trace)) < MOST_ANALYSING


def test_a_forward_costs_little_by_itself(traces):
    trace = read(traces[1])
    forwards, thousands = len(build_report(trace).forwards), load("multiply").count_rows(traces[1]) / 1000
    analysing = over_floor(traces[1], lambda: build_report(trace))
    assert analysing * thousands / forwards < MOST_FORWARD


def test_a_longer_trace_costs_no_more_per_row(traces):
    short, long = (read(path) for path in traces)
    pairs = [(cpu(lambda: build_report(short)), cpu(lambda: build_report(long))) for _ in range(5)]
    growth = min(long for _, long in pairs) / min(short for short, _ in pairs) / 4
    assert growth < MOST_GROWTH
