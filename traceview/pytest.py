"""A pytest plugin that holds saved traces against limits, beside the tests of the code that made them.

::

    @pytest.mark.trace_limits("traces/prefill.sqlite", pipeline_efficiency=">= 0.95", findings=["!high"])
    def test_prefill_hides_its_loads(trace_report):
        assert trace_report.summary.forwards >= 3

The path is relative to pytest's root folder, the limits are those of a budget file. A broken limit is a failure, a
trace that cannot be read or lacks what a limit is about an error. Installed with traceview;
``-p no:traceview.pytest`` turns it off.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.budget import Outcome
    from traceview.report import Report

MARKER = "trace_limits"
_Made = TypeVar("_Made")
_REPORTS = pytest.StashKey[dict[Path, "Report"]]()
_BROKEN = pytest.StashKey[list["Outcome"]]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    line = f'{MARKER}(path, **limits): hold a trace against limits, e.g. makespan_ms="<= 12", findings=["!high"]'
    config.addinivalue_line("markers", line)
    config.stash[_REPORTS] = {}


@pytest.fixture
def trace_report(request: pytest.FixtureRequest) -> Report:
    """Return the report of the trace that the test's ``trace_limits`` marker names."""
    marker = request.node.get_closest_marker(MARKER)
    if marker is None:
        pytest.fail(f'trace_report needs @pytest.mark.{MARKER}("path/to/trace.sqlite")', pytrace=False)
    return _report(request.config, _path(marker))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hold the traces of the test's markers against their limits; what cannot be judged is an error of the test."""
    broken: list[Outcome] = []
    for marker in item.iter_markers(MARKER):
        broken += _broken(item.config, marker)
    item.stash[_BROKEN] = broken


def pytest_runtest_call(item: pytest.Item) -> None:
    """Fail the test where a limit is broken."""
    broken = item.stash.get(_BROKEN, [])
    if broken:
        pytest.fail("\n".join(_told(outcome) for outcome in broken), pytrace=False)


def _broken(config: pytest.Config, marker: pytest.Mark) -> list[Outcome]:
    from traceview.analysis.budget import BROKEN, CANNOT_JUDGE, judge
    from traceview.analysis.budget_file import parse_rules

    report = _report(config, _path(marker))
    rules = _or_fail(lambda: parse_rules(marker.kwargs, f"the marker {MARKER}"))
    outcomes = judge(report, rules)
    untold = [outcome for outcome in outcomes if outcome.verdict == CANNOT_JUDGE]
    if untold:
        pytest.fail("\n".join(_told(outcome) for outcome in untold), pytrace=False)
    return [outcome for outcome in outcomes if outcome.verdict == BROKEN]


def _path(marker: pytest.Mark) -> str:
    if len(marker.args) != 1:
        pytest.fail(f'{MARKER} takes one trace: @pytest.mark.{MARKER}("path/to/trace.sqlite")', pytrace=False)
    return str(marker.args[0])


def _report(config: pytest.Config, path: str) -> Report:
    """Return the report of a trace, which is read once a session."""
    from traceview.analysis.report import build_report
    from traceview.reading import read

    place = config.rootpath / path
    reports = config.stash[_REPORTS]
    if place not in reports:
        reports[place] = _or_fail(lambda: build_report(read(place)))
    return reports[place]


def _or_fail(make: Callable[[], _Made]) -> _Made:
    """Return what is made, or fail with the one line of an error raised on purpose, outside of its handling."""
    from traceview.errors import TraceviewError

    try:
        return make()
    except TraceviewError as error:
        told = str(error)
    pytest.fail(told, pytrace=False)


def _told(outcome: Any) -> str:
    lines = (f"{outcome.message}: {outcome.about}" if outcome.about else outcome.message, outcome.advice)
    return "\n  → ".join(line for line in lines if line)
