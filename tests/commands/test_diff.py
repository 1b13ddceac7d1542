"""``traceview diff`` answers in its first line, and its exit code says what a build has to know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from noisy_traces import noisy_trace
from trace_builder import TraceBuilder

from traceview.analysis.report import build_report
from traceview.cli import run
from traceview.reading import read
from traceview.units import duration

SAMPLES = Path(__file__).parents[2] / "sample_traces"
HEALTHY, FAULTY = SAMPLES / "healthy.sqlite", SAMPLES / "device_sync.sqlite"
"""the same layers and bytes; the other synchronises the device after each layer's compute"""


def diff(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(["diff", *map(str, arguments)])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def made(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    diff(*arguments, "--format", "json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def makespan(path: Path) -> int:
    summary = build_report(read(path)).summary
    assert summary is not None
    return summary.measures.makespan_ns


def test_the_first_line_is_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(HEALTHY, FAULTY) == 0
    lines = capsys.readouterr().out.splitlines()
    base, new = makespan(HEALTHY), makespan(FAULTY)
    share = f"{100 * (new - base) / base:.0f}"
    assert lines[0] == f"Regressed: a forward takes {duration(new)} instead of {duration(base)} (+{share} %)."
    assert lines[1].startswith("Where it went: sync +")
    assert lines[2].startswith("Findings that appeared: accidental_sync")
    assert all(len(line) <= 100 for line in lines)


def test_markdown_fits_a_pull_request_comment(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(HEALTHY, FAULTY, "--format", "markdown", "--only-changed") == 0
    written = capsys.readouterr().out
    assert written.startswith("**Regressed:** a forward takes ")
    assert f"| makespan | {duration(makespan(HEALTHY))} | {duration(makespan(FAULTY))} |" in written
    assert "load pieces" not in written
    assert len(written) < 6000


def test_json_has_every_measure_with_its_interval(capsys: pytest.CaptureFixture[str]) -> None:
    found = made(capsys, HEALTHY, FAULTY)
    assert (found["schema"], found["verdict"], found["sampled"]) == ("traceview.diff/1", "regressed", "forwards")
    row = next(one for one in found["measures"] if one["measure"] == "makespan_ns")
    assert (row["base"]["median"], row["new"]["median"]) == (makespan(HEALTHY), makespan(FAULTY))
    assert row["new"]["median"] - row["base"]["median"] == row["difference"]
    assert row["interval"][0] <= row["difference"] <= row["interval"][1]
    assert row["relative"] == pytest.approx(row["difference"] / row["base"]["median"])
    assert {one["subject"] for one in found["measures"] if one["measure"] == "layer_stall_ns"} == {
        f"layer {number}" for number in range(8)
    }
    changed = made(capsys, HEALTHY, FAULTY, "--only-changed")["measures"]
    assert {one["verdict"] for one in changed} <= {"regressed", "improved"}


@pytest.mark.parametrize(
    ("base", "new", "expected"), [(HEALTHY, FAULTY, 1), (FAULTY, HEALTHY, 0), (HEALTHY, HEALTHY, 0)]
)
def test_only_a_regression_fails_and_only_when_asked_to(base: Path, new: Path, expected: int) -> None:
    assert diff(base, new, "--fail-on", "regression") == expected
    assert diff(base, new) == 0


def test_too_few_samples_cannot_be_judged(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(HEALTHY, FAULTY, "--forwards", "3:", "--fail-on", "regression") == 3
    assert capsys.readouterr().out.startswith("Cannot tell: 2 against 2 samples where it takes 3 a side")


def test_a_trace_that_cannot_be_read_is_no_regression(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(HEALTHY.read_bytes()[:50_000])
    assert diff(HEALTHY, cut, "--fail-on", "regression") == 3
    assert diff(HEALTHY, cut) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2
    assert "truncated" in err


def test_a_threshold_changes_what_counts(capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(HEALTHY, FAULTY, "--threshold", "min:1000%", "--fail-on", "regression") == 1
    assert "accidental calls" in capsys.readouterr().out.splitlines()[0]
    verdicts = {
        one["measure"]: one["verdict"]
        for one in made(capsys, HEALTHY, FAULTY, "--threshold", "makespan=min:1000%")["measures"]
    }
    assert verdicts["makespan_ns"] == "same"
    assert verdicts["sync"] == "regressed"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--threshold", "makspan=min:5%"], "did you mean makespan_ns"),
        (["--threshold", "makespan=5%"], "write it as min:5%"),
        (["--threshold", "makespan=min:-5%"], "write it as min:5%"),
        (["--new", str(FAULTY)], "put it behind --base or --new"),
    ],
)
def test_wrong_usage_says_what_to_type(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert diff(HEALTHY, FAULTY, *arguments) == 2
    assert told in capsys.readouterr().err


def test_a_diff_takes_two_sides(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([HEALTHY], [HEALTHY, FAULTY, FAULTY], ["--base", HEALTHY], []):
        assert diff(*arguments) == 2
        assert "traceview diff BASE NEW" in capsys.readouterr().err


def test_several_traces_a_side_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = [noisy_trace(tmp_path / f"b{seed}.sqlite", seed, forwards=5) for seed in (1, 2)]
    new = [noisy_trace(tmp_path / f"n{seed}.sqlite", seed, forwards=5, slower={2: 1.2}) for seed in (3, 4)]
    found = made(capsys, "--base", *base, "--new", *new, "--only-changed")
    assert found["base"]["paths"] == [str(path) for path in base]
    assert (found["base"]["samples"], found["new"]["samples"]) == (10, 10)
    assert ("layer_load_busy_ns", "layer 2") in {(one["measure"], one["subject"]) for one in found["measures"]}
    assert diff("--base", *base, "--new", *new) == 0
    assert "load of layer 2" in capsys.readouterr().out.splitlines()[0]


def test_a_trace_counts_once_a_side_and_one_on_both_sides_is_remarked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roundabout = HEALTHY.parent / ".." / HEALTHY.parent.name / HEALTHY.name
    assert diff("--base", HEALTHY, roundabout, "--new", FAULTY) == 2
    assert "is given twice on one side: name each capture once" in capsys.readouterr().err
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(HEALTHY.read_bytes())
    assert "both sides hold the same capture" in made(capsys, HEALTHY, copy)["remarks"][0]
    assert made(capsys, HEALTHY, FAULTY)["remarks"][0].startswith("not the same kernels run")


def steps(path: Path, kernel_ns: int, steps: int) -> Path:
    builder = TraceBuilder()
    for index in range(steps):
        start = 1_000_000 * (index + 1)
        builder.range(f"step {index}", start, start + 50_000)
        end = start + 20_000 + kernel_ns + 100 * (index % 3)
        builder.kernel(start + 20_000, end, name="work", call=(start + 1, start + 9))
    return builder.write(path)


def test_a_range_that_repeats_stands_for_the_forward(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = made(capsys, steps(tmp_path / "a.sqlite", 300_000, 6), steps(tmp_path / "b.sqlite", 400_000, 8))
    assert found["sampled"] == "repeats of range step #"
    assert (found["base"]["samples"], found["new"]["samples"]) == (5, 7)
    assert found["verdict"] == "regressed"


def test_hostile_names_stay_inert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "\x1b[31m|`x`<script>@octocat"
    for name, end in (("a", 300_000), ("b", 400_000)):
        builder = TraceBuilder()
        for index in range(5):
            start = 1_000_000 * (index + 1)
            builder.kernel(start, start + end + index, name=hostile, call=(start - 90, start - 80))
        builder.write(tmp_path / f"{name}.sqlite")
    for style in ("text", "markdown", "json"):
        assert diff(tmp_path / "a.sqlite", tmp_path / "b.sqlite", "--format", style) == 0
        written = capsys.readouterr().out
        assert "\x1b" not in written
        assert style != "markdown" or "<script>" not in written.replace("`|", "")
