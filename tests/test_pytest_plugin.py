"""The pytest plugin: a marker with limits, a fixture with the report; broken fails, cannot judge errs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "sample_traces"
PLUGIN = "traceview.pytest"

pytest_plugins = ["pytester"]


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    (pytester.path / "traces").mkdir()
    for name in ("healthy", "item"):
        shutil.copy(SAMPLES / f"{name}.sqlite", pytester.path / "traces")
    (pytester.path / "traces" / "cut.sqlite").write_bytes((SAMPLES / "healthy.sqlite").read_bytes()[:100_000])
    return pytester


def outcomes(suite: pytest.Pytester, body: str) -> pytest.RunResult:
    suite.makepyfile(f"import pytest\n{body}")
    return suite.runpytest_inprocess("-p", PLUGIN, "--strict-markers", "-q")


def test_limits_that_hold_pass_and_the_fixture_has_the_report(suite: pytest.Pytester) -> None:
    result = outcomes(
        suite,
        """
@pytest.mark.trace_limits("traces/healthy.sqlite", pipeline_efficiency=">= 0.95", findings=["!high"])
def test_hides(trace_report):
    assert trace_report.summary.forwards == 3

@pytest.mark.trace_limits("traces/healthy.sqlite", accidental_syncs="== 0")
def test_without_fixture():
    pass

def test_unmarked():
    pass
""",
    )
    result.assert_outcomes(passed=3)


def test_a_broken_limit_fails_before_the_body_runs(suite: pytest.Pytester) -> None:
    result = outcomes(
        suite,
        """
@pytest.mark.trace_limits("traces/item.sqlite", accidental_syncs="== 0", makespan_ms="<= 20", findings=["!high"])
def test_reads_nothing_back(trace_report):
    print("the body ran")
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*scalar_readback costs 1.015 ms*", "*accidental_syncs is 7, to be == 0*"])
    result.stdout.no_fnmatch_line("*makespan_ms*is 12*")
    result.stdout.no_fnmatch_line("the body ran")


@pytest.mark.parametrize(
    ("marker", "told"),
    [
        ('"traces/cut.sqlite"', "*truncated*"),
        ('"traces/none.sqlite"', "*no such file*"),
        ('"traces/healthy.sqlite", findings=["!inbound_contention"]', "*cannot be judged*"),
        ('"traces/healthy.sqlite", makspan_ms="<= 1"', "*did you mean makespan_ms*"),
        ("", "*takes one trace*"),
    ],
)
def test_what_cannot_be_judged_is_an_error_of_the_test(suite: pytest.Pytester, marker: str, told: str) -> None:
    result = outcomes(suite, f"@pytest.mark.trace_limits({marker})\ndef test_it(trace_report):\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([told])


def test_the_fixture_without_a_marker_says_what_it_needs(suite: pytest.Pytester) -> None:
    result = outcomes(suite, "def test_it(trace_report):\n    pass\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs @pytest.mark.trace_limits*"])
