"""``traceview budget`` writes a file that its own run keeps to and a worse run breaks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from trace_builder import TraceBuilder

from traceview.analysis.report import build_report
from traceview.cli import run
from traceview.reading import read

SAMPLES = Path(__file__).parents[2] / "sample_traces"
HEALTHY, ITEM = SAMPLES / "healthy.sqlite", SAMPLES / "item_24_layers.sqlite"


def traceview(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(list(map(str, arguments)))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.mark.parametrize("slack", ["0%", "3%", "10%", "50%"])
@pytest.mark.parametrize("trace", [HEALTHY, ITEM])
def test_a_run_keeps_to_the_limits_of_its_own_budget(trace: Path, slack: str, tmp_path: Path) -> None:
    budget = tmp_path / "budget.toml"
    assert traceview("budget", trace, "--slack", slack, "-o", budget) == 0
    kept = budget.read_text().replace('findings = ["!high"]\n', "")
    budget.write_text(kept)
    assert traceview("check", trace, "--budget", budget) == 0


def test_a_worse_run_breaks_it(tmp_path: Path) -> None:
    budget = tmp_path / "budget.toml"
    assert traceview("budget", HEALTHY, "-o", budget) == 0
    assert traceview("check", HEALTHY, "--budget", budget) == 0
    assert traceview("check", ITEM, "--budget", budget) == 1


def test_slack_is_what_may_be_lost(capsys: pytest.CaptureFixture[str]) -> None:
    assert traceview("budget", HEALTHY, "--slack", "20%") == 0
    written = capsys.readouterr().out
    measured = build_report(read(HEALTHY)).summary
    assert measured is not None
    limits = dict(re.findall(r'^(\w+) = "[<>=]+ ([\d.]+)"', written, re.MULTILINE))
    makespan, efficiency = measured.measures.makespan_ns / 1e6, measured.measures.pipeline_efficiency
    assert efficiency is not None
    assert 1.2 * makespan <= float(limits["makespan_ms"]) < 1.21 * makespan
    assert 0.79 * efficiency < float(limits["pipeline_efficiency"]) <= 0.8 * efficiency
    assert 'accidental_syncs = "== 0"  # measured 0' in written


def test_a_run_with_a_finding_of_its_own_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert traceview("budget", ITEM) == 0
    assert "# this run itself has scalar_readback" in capsys.readouterr().out


def test_it_overwrites_nothing_and_asks_for_a_run_with_forwards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text("mine")
    assert traceview("budget", HEALTHY, "-o", budget) == 1
    assert budget.read_text() == "mine"
    assert traceview("budget", HEALTHY, "-o", budget, "--force") == 0
    unnamed = TraceBuilder().kernel(2_000, 5_000, call=(100, 200)).write(tmp_path / "unnamed.sqlite")
    assert traceview("budget", unnamed) == 2
    for slack in ("10", "-5%", "100%", "x%"):
        assert traceview("budget", HEALTHY, "--slack", slack) == 2
    assert "no measured forward" in capsys.readouterr().err
