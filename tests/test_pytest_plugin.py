"""The pytest plugin: a marker with limits, a fixture with the report; broken fails, cannot judge errs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[1] / "sample_traces"
SUITE = """
import pytest

limits = pytest.mark.trace_limits

@limits("traces/healthy.sqlite", pipeline_efficiency=">= 0.95", findings=["!scalar_readback"])
def test_holds(trace_report):
    assert trace_report.summary.forwards == 3

@limits("traces/healthy.sqlite", accidental_syncs="== 0")
def test_holds_without_the_fixture():
    pass

def test_unmarked():
    pass

@limits("traces/item.sqlite", accidental_syncs="== 0", makespan_ms="<= 2000", findings=["!scalar_readback"])
def test_broken(trace_report):
    print("the body of a broken one ran")

@limits("traces/healthy.sqlite", makespan_ms="<= 2000")
@limits("traces/item.sqlite", makespan_ms="<= 1")
def test_broken_by_one_of_two():
    pass

@limits("traces/cut.sqlite")
def test_truncated(trace_report):
    pass

@limits("traces/none.sqlite", makespan_ms="<= 1")
def test_missing():
    pass

@limits("traces/healthy.sqlite", findings=["!inbound_contention"])
def test_lacks_data():
    pass

@limits("traces/healthy.sqlite", makspan_ms="<= 1")
def test_unknown_limit():
    pass

@limits()
def test_no_path():
    pass

def test_fixture_without_marker(trace_report):
    pass
"""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return what pytest prints of the suite, run as a user would in a folder with saved traces."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "traces").mkdir()
    for name in ("healthy", "item"):
        shutil.copy(SAMPLES / f"{name}.sqlite", folder / "traces")
    (folder / "traces" / "cut.sqlite").write_bytes((SAMPLES / "healthy.sqlite").read_bytes()[:50_000])
    (folder / "test_traces.py").write_text(SUITE)
    (folder / "pytest.ini").write_text("[pytest]\n")
    command = [sys.executable, "-m", "pytest", "-p", "traceview.pytest", "--strict-markers", "-rA", "--color=no"]
    wide = {**os.environ, "COLUMNS": "200"}  # pytest cuts its summary at the terminal's width
    done = subprocess.run(command, cwd=folder, env=wide, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ["holds", "holds_without_the_fixture", "unmarked"])
def test_what_holds_passes(name: str, output: str) -> None:
    assert f"PASSED test_traces.py::test_{name}\n" in output


def test_a_broken_limit_fails_before_the_body_runs(output: str) -> None:
    assert "FAILED test_traces.py::test_broken - Failed: scalar_readback costs " in output
    assert ", to be == 0" in output
    assert "to be <= 2,000" not in output
    assert "the body of a broken one ran" not in output.replace(SUITE, "")
    assert "FAILED test_traces.py::test_broken_by_one_of_two - Failed: makespan_ms is " in output
    assert "to be <= 1: from the first load" in output


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("truncated", "is truncated"),
        ("missing", "no such file"),
        ("lacks_data", "!inbound_contention cannot be judged"),
        ("unknown_limit", "did you mean makespan_ms"),
        ("no_path", "trace_limits takes one trace"),
        ("fixture_without_marker", "trace_report needs @pytest.mark.trace_limits"),
    ],
)
def test_what_cannot_be_judged_is_an_error_of_the_test(name: str, told: str, output: str) -> None:
    assert f"ERROR test_traces.py::test_{name} - Failed: " in output
    assert told in output


def test_nothing_else_happened(output: str) -> None:
    assert "2 failed, 3 passed, 6 errors" in output
