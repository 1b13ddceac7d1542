"""The GitHub Action's own shell, run as GitHub runs it: inputs in the environment, a summary and an output file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_traces"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
CHECK: dict[str, Any] = next(step for step in ACTION["runs"]["steps"] if step.get("id") == "check")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


class Job:
    """A workflow's folder with saved traces, and what a step leaves in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.summary, self.output = folder / "summary.md", folder / "output"
        (folder / "my traces").mkdir()
        shutil.copy(SAMPLES / "healthy.sqlite", folder / "my traces" / "healthy.sqlite")
        for name in ("healthy", "item"):
            shutil.copy(SAMPLES / f"{name}.sqlite", folder / f"{name}.sqlite")
        (folder / "budget.toml").write_text('[limits]\naccidental_syncs = "== 0"\n')

    def run(self, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run the step with these inputs, others at their defaults."""
        given = {name: spec.get("default", "") for name, spec in ACTION["inputs"].items()} | inputs
        wanted = {name: _resolved(value, given) for name, value in CHECK["env"].items()}
        files = {"GITHUB_STEP_SUMMARY": str(self.summary), "GITHUB_OUTPUT": str(self.output)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        script = self.folder / "step.sh"
        script.write_text(CHECK["run"])
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.folder,
            env={**os.environ, **wanted, **files, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )


def _resolved(value: str, given: dict[str, str]) -> str:
    """Return an ``env`` entry with its expression replaced by the input that it names."""
    name = value.removeprefix("${{ inputs.").removesuffix(" }}")
    assert name in given, value
    return given[name]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_passing_trace_passes_and_the_summary_says_so(job: Job) -> None:
    done = job.run(traces="healthy.sqlite", budget="budget.toml")
    assert done.returncode == 0, done.stderr
    assert job.summary.read_text().startswith("**Pass:**")
    assert job.output.read_text() == "status=0\n"
    assert (job.folder / "traceview-check.xml").is_file()
    assert (job.folder / "traceview-check.sarif").is_file()


def test_a_broken_budget_fails_the_step_and_annotates_it(job: Job) -> None:
    done = job.run(traces="*.sqlite", budget="budget.toml")
    assert done.returncode == 1
    assert "::error file=item.sqlite,title=traceview%3A accidental_syncs == 0::" in done.stderr
    summary = job.summary.read_text()
    assert summary.startswith("**Broken:**")
    assert "healthy.sqlite" in summary
    assert job.output.read_text() == "status=1\n"


def test_a_baseline_and_more_arguments_reach_the_command(job: Job) -> None:
    assert job.run(traces="item.sqlite", baseline="healthy.sqlite").returncode == 1
    done = job.run(traces="item.sqlite", baseline="heal*.sqlite", arguments="--format json --forwards 3:4")
    assert done.returncode == 3
    assert '"exit_code": 3' in done.stdout


def test_what_matches_nothing_cannot_be_judged(job: Job) -> None:
    for inputs in (
        {"traces": "none-*.sqlite"},
        {"traces": "heal*.sqlite\nnone-*.sqlite"},
        {"traces": " "},
        {"traces": "item.sqlite", "baseline": "none-*"},
        {"traces": "item.sqlite", "baseline": "healthy.sqlite none-*"},
    ):
        job.output.unlink(missing_ok=True)
        done = job.run(**inputs)
        assert done.returncode == 3
        assert done.stderr.startswith("::error title=traceview::no ")
        assert job.output.read_text() == "status=3\n"


def test_lines_globs_and_files_with_spaces_all_reach_the_command(job: Job) -> None:
    done = job.run(traces="heal*.sqlite\n  **/heal?hy.sqlite\titem.sqlite\n", arguments="--format json")
    paths = [one["path"] for one in json.loads(done.stdout)["traces"]]
    assert paths == ["healthy.sqlite", "healthy.sqlite", "my traces/healthy.sqlite", "item.sqlite"]


def test_a_report_that_nobody_wants_is_not_written(job: Job) -> None:
    assert job.run(traces="healthy.sqlite", junit="", sarif="out put.sarif").returncode == 0
    assert not list(job.folder.glob("*.xml"))
    assert (job.folder / "out put.sarif").is_file()


def test_inputs_are_data_and_never_shell(job: Job) -> None:
    done = job.run(traces="healthy.sqlite $(touch owned) `touch owned`;touch owned", arguments="; touch owned")
    assert done.returncode in (2, 3)
    assert not (job.folder / "owned").exists()


def test_the_step_names_every_input_that_it_reads_and_installs_this_project() -> None:
    inline = [step["run"] for step in ACTION["runs"]["steps"] if "run" in step]
    assert all("${{" not in script for script in inline)
    assert any('pip install --quiet "$GITHUB_ACTION_PATH"' in script for script in inline)
    assert ACTION["runs"]["using"] == "composite"
