"""``traceview check``: its exit codes, and what it leaves for a build server to read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import xmlschema
from trace_builder import TraceBuilder

from traceview.analysis.report import build_report
from traceview.cli import run
from traceview.reading import read

ROOT = Path(__file__).parents[2]
HEALTHY, FAULTY = ROOT / "sample_traces" / "healthy.sqlite", ROOT / "sample_traces" / "device_sync.sqlite"
"""the same layers and bytes; the other synchronises the device after each of its eight layers' compute"""
ITEM = ROOT / "sample_traces" / "item.sqlite"
PAGEABLE = ROOT / "sample_traces" / "pageable.sqlite"
SCHEMAS = ROOT / "tests" / "schemas"
BUDGET = """
[limits]
first_layer_exposed_ms = "<= 1.5"
pipeline_efficiency = ">= 0.95"
accidental_syncs = "== 0"
h2d_pieces_per_layer = "<= 4"
pageable_bytes = "== 0"
findings = ["!pageable_source", "!accidental_sync"]
"""


def check(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(["check", *map(str, arguments)])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def efficiency() -> float:
    """Return the faulty run's pipeline efficiency."""
    summary = build_report(read(FAULTY)).summary
    assert summary is not None
    assert summary.measures.pipeline_efficiency is not None
    return summary.measures.pipeline_efficiency


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    path = tmp_path / "budget.toml"
    path.write_text(BUDGET)
    return path


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    path = tmp_path / "cut.sqlite"
    path.write_bytes(HEALTHY.read_bytes()[:50_000])
    return path


@pytest.fixture
def unnamed(tmp_path: Path) -> Path:
    builder = TraceBuilder().kernel(2_000, 5_000, call=(100, 200)).copy(1_000, 2_000, call=(10, 20))
    return builder.write(tmp_path / "unnamed.sqlite")


# exit codes


def test_0_where_all_pass(budget: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(HEALTHY, "--budget", budget) == 0
    assert capsys.readouterr().out.startswith("Pass: the trace keeps to all 7 rules.\n")


def test_1_where_a_budget_is_broken(budget: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(FAULTY, "--budget", budget) == 1
    written = capsys.readouterr().out
    assert written.startswith("Broken: accidental_sync costs ")
    assert "severity high; 3 of 7 rules in all." in " ".join(written.splitlines()[:2])
    assert "accidental_syncs is 7, to be == 0" in written
    assert f"pipeline_efficiency is {efficiency():.4g}, to be >= 0.95" in written


def test_1_where_a_measure_regressed_from_the_baseline(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(FAULTY, "--baseline", HEALTHY) == 1
    written = capsys.readouterr().out
    assert written.startswith("Broken: makespan ")
    assert "Findings that appeared: accidental_sync" in written
    assert check(HEALTHY, "--baseline", FAULTY) == 0
    assert check(HEALTHY, "--baseline", HEALTHY) == 0


def test_2_on_wrong_usage(tmp_path: Path, budget: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check() == 2
    assert check(HEALTHY, "--budget", tmp_path / "none.toml") == 2
    assert "traceview budget TRACE -o budget.toml" in capsys.readouterr().err
    assert check(HEALTHY, "--budget", budget, "--junit", HEALTHY) == 2


def test_2_where_a_report_has_no_place_and_the_budget_stays(
    budget: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    both = tmp_path / "both"
    for reports, told in (
        (["--junit", tmp_path / "none" / "check.xml"], "make it first: mkdir -p"),
        (["--sarif", budget], "is the input: name another file with --sarif"),
        (["--junit", both, "--sarif", both], "is to hold both reports"),
    ):
        assert check(FAULTY, "--budget", budget, *reports) == 2
        assert told in capsys.readouterr().err
    assert budget.read_text() == BUDGET
    assert check(HEALTHY, "--baseline", FAULTY, "--baseline", FAULTY) == 2
    assert "is given twice" in capsys.readouterr().err


@pytest.mark.parametrize(("trace", "code"), [(HEALTHY, 0), (FAULTY, 1)])
def test_a_summary_that_cannot_be_written_is_no_regression(
    trace: Path,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "none" / "summary.md"))
    assert check(trace, "--github") == code
    assert capsys.readouterr().err.endswith("summary.md cannot be written: No such file or directory\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
@pytest.mark.parametrize(("trace", "code"), [(HEALTHY, 2), (FAULTY, 1)])
def test_output_that_is_lost_never_turns_into_another_verdict(trace: Path, code: int) -> None:
    command = [sys.executable, "-m", "traceview", "check", str(trace), "--baseline", str(HEALTHY)]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == code
    assert "the output could not be written" in done.stderr


def test_a_closed_pipe_does_not_pass_what_is_broken() -> None:
    command = [sys.executable, "-m", "traceview", "check", str(FAULTY), "--format", "json", "--baseline", str(HEALTHY)]
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as pipe:
        done = subprocess.run(command, cwd=ROOT, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_3_on_an_unreadable_trace_with_one_line(cut: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check(cut) == 3
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert out.startswith("Cannot judge: ")
    assert "truncated" in out
    assert err == ""
    assert check(cut.with_name("missing.sqlite")) == 3
    assert check(HEALTHY, "--baseline", cut) == 3


def test_3_where_a_trace_lacks_what_a_limit_is_about(
    unnamed: Path, budget: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(unnamed, "--budget", budget) == 3
    assert capsys.readouterr().out.startswith("Cannot judge: !pageable_source cannot be judged: no forward")
    assert check(unnamed) == 3


def test_3_where_there_are_too_few_samples_for_the_baseline() -> None:
    assert check(FAULTY, "--baseline", HEALTHY, "--forwards", "3:4") == 3


def test_what_cannot_be_judged_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    check(FAULTY, "--baseline", HEALTHY, "--forwards", "3:")
    written = " ".join(capsys.readouterr().out.split())
    assert written.startswith(
        f"Cannot judge: Cannot tell: 2 against 2 samples where it takes 3 a side, so capture more. {FAULTY} "
    )


def test_what_is_broken_comes_with_its_cause_and_what_to_type_next(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = tmp_path / "syncs.toml"
    budget.write_text('[limits]\naccidental_syncs = "== 0"\n')
    check(ITEM, "--budget", budget)
    written = " ".join(capsys.readouterr().out.split())
    assert "cause scalar_readback costs " in written
    assert "→ Keep the value on the device" in written
    assert f"see: `traceview report {ITEM}`" in written
    check(ITEM, "--baseline", HEALTHY)
    written = " ".join(capsys.readouterr().out.split())
    assert "cause scalar_readback costs " in written
    assert f"see: `traceview diff --base {HEALTHY} --new {ITEM}`" in written
    check(ITEM, "--baseline", ITEM, "--format", "json")
    assert json.loads(capsys.readouterr().out)["traces"][0]["causes"] == []


def test_a_measure_that_regressed_in_many_layers_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(PAGEABLE, "--baseline", HEALTHY, "--format", "json") == 1
    rules = [one["rule"] for one in json.loads(capsys.readouterr().out)["traces"][0]["outcomes"]]
    assert rules.count("no regression of layer_load_busy_ns") == 1
    assert "no regression of layer_stall_ns of layer 0" in rules
    check(PAGEABLE, "--baseline", HEALTHY)
    written = " ".join(capsys.readouterr().out.split())
    assert ", most of 8 layers" in written
    assert f"; {len(rules)} measures regressed in all." in written
    assert "Mind: not the same kernels run" in written


def test_a_defect_of_our_own_is_no_regression(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("traceview.analysis.budget.judge", fail)
    assert check(HEALTHY) == 3
    out, err = capsys.readouterr()
    assert out.startswith(f"Cannot judge: {HEALTHY} makes traceview fail (ZeroDivisionError)")
    assert "Traceback" in err


def test_of_many_traces_what_they_keep_to_is_counted(
    budget: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    links = [tmp_path / f"trace_{number}.sqlite" for number in range(6)]
    for link in links:
        link.symlink_to(HEALTHY)
    check(*links, "--budget", budget)
    written = capsys.readouterr().out
    assert written.startswith("Pass: 6 traces keep to all 42 rules.\n")
    assert written.count("  pass         7 rules\n") == 6


def test_a_glob_of_the_budget_that_no_trace_matches_is_told(budget: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget.write_text(BUDGET + '[files."ofload*"]\nmakespan_ms = "<= 1"\n')
    assert check(HEALTHY, "--budget", budget) == 0
    assert 'No trace here matches [files."ofload*"].' in capsys.readouterr().out
    check(HEALTHY, "--budget", budget, "--format", "json")
    assert json.loads(capsys.readouterr().out)["unmatched_globs"] == ["ofload*"]


def test_a_broken_rule_outweighs_one_that_cannot_be_judged(cut: Path, budget: Path) -> None:
    assert check(cut, HEALTHY, "--budget", budget) == 3
    assert check(cut, FAULTY, HEALTHY, "--budget", budget) == 1


def test_without_budget_and_baseline_the_findings_are_the_budget_and_it_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert check(HEALTHY) == 0
    assert "Neither budget nor baseline was given: any finding of high severity fails." in capsys.readouterr().out
    assert check(FAULTY) == 1


def test_json_says_it_all(cut: Path, budget: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = check(HEALTHY, FAULTY, cut, "--budget", budget, "--baseline", HEALTHY, "--format", "json")
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["schema"], made["verdict"], made["exit_code"]) == ("traceview.check/1", "broken", code)
    assert [one["verdict"] for one in made["traces"]] == ["pass", "broken", "cannot judge"]
    assert made["traces"][0]["basis"] == "budget and baseline"
    assert made["traces"][1]["comparison"]["verdict"] == "regressed"
    efficiency = next(one for one in made["traces"][1]["outcomes"] if one["id"] == "pipeline_efficiency")
    assert (efficiency["rule"], efficiency["bound"]) == ("pipeline_efficiency >= 0.95", 0.95)


# what it leaves behind


def test_junit_keeps_to_its_schema_and_counts_right(cut: Path, budget: Path, tmp_path: Path) -> None:
    junit = tmp_path / "check.xml"
    check(HEALTHY, FAULTY, cut, "--budget", budget, "--junit", junit)
    schema = xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")
    schema.validate(junit)
    suites = ElementTree.parse(junit).getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("15", "3", "1")
    failed = [case.get("name") for case in suites.iter("testcase") if case.find("failure") is not None]
    assert failed == ["!accidental_sync", "pipeline_efficiency >= 0.95", "accidental_syncs == 0"]
    assert not schema.is_valid("<testsuites><testcase/></testsuites>")


def test_sarif_keeps_to_its_schema_and_names_the_trace(cut: Path, budget: Path, tmp_path: Path) -> None:
    sarif = tmp_path / "check.sarif"
    check(HEALTHY, FAULTY, cut, "--budget", budget, "--sarif", sarif)
    log = json.loads(sarif.read_text())
    validator = jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text()))
    assert [error.message for error in validator.iter_errors(log)] == []
    (made,) = log["runs"]
    rules = [rule["id"] for rule in made["tool"]["driver"]["rules"]]
    assert rules == ["accidental_sync", "pipeline_efficiency", "accidental_syncs"]
    for result in made["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert place.endswith("sample_traces/device_sync.sqlite")
    assert made["invocations"][0]["executionSuccessful"] is False
    assert not validator.is_valid({"version": "2.1.0"})


def test_github_gets_annotations_and_a_summary(
    cut: Path, budget: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("# what was there before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    monkeypatch.chdir(ROOT)
    assert check(HEALTHY, FAULTY, cut, "--budget", budget, "--github", "--format", "json") == 1
    out, err = capsys.readouterr()
    json.loads(out)
    commands = err.splitlines()
    assert [line.partition(" ")[0] for line in commands] == ["::error", "::error", "::error", "::warning"]
    assert commands[0].startswith("::error file=sample_traces/device_sync.sqlite,title=traceview%3A accidental_sync::")
    assert commands[1] == (
        "::error file=sample_traces/device_sync.sqlite,title=traceview%3A pipeline_efficiency >= 0.95::"
        f"pipeline_efficiency is {efficiency():.4g}, to be >= 0.95. ideal over makespan, median"
    )
    written = summary.read_text()
    assert written.startswith("# what was there before\n**Broken:**")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert check(HEALTHY, "--budget", budget, "--github") == 0
    assert summary.read_text() == written


def test_files_are_named_from_the_workflows_checkout_wherever_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "deep" / "down").mkdir(parents=True)
    (tmp_path / "deep" / "faulty.sqlite").write_bytes(FAULTY.read_bytes())
    monkeypatch.chdir(tmp_path / "deep" / "down")
    for workspace, expected in ((tmp_path, "deep/faulty.sqlite"), (ROOT, "../faulty.sqlite")):
        monkeypatch.setenv("GITHUB_WORKSPACE", str(workspace))
        assert check("../faulty.sqlite", "--github", "--sarif", "check.sarif") == 1
        assert capsys.readouterr().err.startswith(f"::error file={expected},")
        (result,) = json.loads(Path("check.sarif").read_text())["runs"][0]["results"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == expected


def test_traces_are_never_changed(budget: Path) -> None:
    before = HEALTHY.read_bytes(), sorted(HEALTHY.parent.iterdir())
    check(HEALTHY, "--budget", budget, "--baseline", FAULTY)
    assert (HEALTHY.read_bytes(), sorted(HEALTHY.parent.iterdir())) == before
