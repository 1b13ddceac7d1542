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
SAMPLE = HERE.parents[1] / "sample_traces" / "healthy.sqlite"

MOST_OVER_FLOOR = 14.0
"""Reading an export over SQLite stepping over the same columns; about 7 where small exports are read row by row."""

MOST_GROWTH = 1.6
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
    multiply = load("multiply").multiply
    folder = tmp_path_factory.mktemp("bench")
    return [multiply(SAMPLE, folder / f"{times}.sqlite", times) for times in (10, 40)]


def cpu(task) -> float:
    begin = time.process_time()
    task()
    return time.process_time() - begin


def test_the_generator_keeps_the_structure(traces):
    one, many = read(SAMPLE), read(traces[0])
    assert len(many.operations) == 10 * len(one.operations)
    assert len(many.calls) == 10 * len(one.calls)
    assert (many.operations.launch >= 0).sum() == 10 * (one.operations.launch >= 0).sum()
    report, reports = build_report(one), build_report(many)
    assert len(reports.forwards) == 10 * len(report.forwards)
    assert {forward.measures.accounting["compute"] for forward in reports.forwards} == {
        forward.measures.accounting["compute"] for forward in report.forwards
    }


def test_reading_costs_a_few_times_what_sqlite_needs_to_step_over_the_rows(traces):
    measure_floor = load("floor").measure_floor
    pairs = [(cpu(lambda: read(traces[1])), measure_floor(traces[1])[1]) for _ in range(5)]
    assert min(one for one, _ in pairs) < MOST_OVER_FLOOR * min(floor for _, floor in pairs)


def test_a_longer_trace_costs_no_more_per_row(traces):
    short, long = (read(path) for path in traces)
    pairs = [(cpu(lambda: build_report(short)), cpu(lambda: build_report(long))) for _ in range(3)]
    growth = min(long for _, long in pairs) / min(short for short, _ in pairs) / 4
    assert growth < MOST_GROWTH
