"""Damaged traces, at random: a report or one clear error. By hand: ``python tests/fuzz.py --minutes 60``."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from fuzz import try_example
from fuzz_mutations import Cut, Fill, Flip, Mark, RawText, Reverse, SetCell, Shift, write_damaged
from fuzz_outcomes import COMMANDS, Outcome, WrongOutcomeError, check_outcome, judge, run_bounded
from fuzz_strategies import CANARY, Example, examples
from hypothesis import HealthCheck, Phase, given, settings
from trace_builder import TraceBuilder, layered_forward

PARTS, EXAMPLES_A_PART = 4, 150


@pytest.mark.filterwarnings("ignore::hypothesis.errors.HypothesisWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_a_damaged_trace_is_answered_or_refused(part: int) -> None:
    """Each part draws anew; a fault is printed as an example to be kept below."""

    @settings(
        max_examples=EXAMPLES_A_PART,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(example=examples)
    def probe(example: Example) -> None:
        try_example(example)

    probe()


FOUND = [
    Example("none", [Reverse("NVTX_EVENTS", None)], "slim"),
    Example("3.20.3", [SetCell("CUPTI_ACTIVITY_KIND_KERNEL", "deviceId", 0, -1)], "report json"),
    Example("3.20.3", [SetCell("CUPTI_ACTIVITY_KIND_MEMCPY", "dstDeviceId", None, -5)], "report json"),
]
"""What fuzzing found, as it found it."""


@pytest.mark.parametrize("example", FOUND, ids=lambda example: f"{example.base} {example.command}")
def test_what_was_found_stays_mended(example: Example) -> None:
    try_example(example)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_whole_trace_is_answered(command: str) -> None:
    """Otherwise the fuzzer would damage a trace that is refused anyhow."""
    judges = command.startswith(("check", "diff fail"))
    assert try_example(Example("3.28.1", [], command)) in ({0, 1, 3} if judges else {0})


WRONG = {
    "an escape": ("report", Outcome(0, "a \x1b[31mname\n", "", {})),
    "a right-to-left mark": ("doctor", Outcome(0, "a \u202ename\n", "", {})),
    "a traceback": ("report", Outcome(1, "", "Traceback (most recent call last):\n  File\nKeyError: 1\n", {})),
    "two lines of error": ("report", Outcome(1, "", "traceview: a: b\ntraceview: c: d\n", {})),
    "half a report": ("report", Outcome(1, "The load", "traceview: a: b\n", {})),
    "an exit code of its own": ("report", Outcome(3, "", "traceview: a: b\n", {})),
    "no answer": ("slim", Outcome(0, "", "", {})),
    "a formula": ("export csv", Outcome(0, "", "", {"out/ranges.csv": b"name\n=1+1\n"})),
    "an element": ("report html", Outcome(0, f"<p><{CANARY}>x</p>", "", {})),
    "an attribute": ("diff html", Outcome(0, f"<p title='' {CANARY}='1'>x</p>", "", {})),
    "an element in Markdown": ("report markdown", Outcome(0, f"a <{CANARY}> b", "", {})),
    "a link in Markdown": (
        "diff markdown",
        Outcome(0, "[a](<java&#115;cript:fuzz>) <a href='javascript:fuzz'>", "", {}),
    ),
    "NaN in JSON": ("report json", Outcome(0, '{"a": NaN}', "", {})),
    "JSON against its schema": ("report json", Outcome(0, '{"a": 1}', "", {})),
    "broken XML": ("check", Outcome(0, "x", "", {"out.xml": b"<a>"})),
    "a temporary file": ("slim", Outcome(0, "x", "", {".out.sqlite.12": b"x"})),
    "a file of a failure": ("slim", Outcome(1, "", "traceview: a: b\n", {"out.sqlite": b"x"})),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_outcome_is_noticed(what: str) -> None:
    with pytest.raises(WrongOutcomeError):
        check_outcome(*WRONG[what])


def test_a_command_without_end_or_with_a_surprise_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_damaged(tmp_path / "trace.sqlite", "item", [])

    def surprise(*_: object) -> None:
        raise KeyError("surprise")

    def endless(*_: object) -> None:
        while True:
            pass

    for culprit, words in ((surprise, "KeyError"), (endless, "out of time")):
        monkeypatch.setattr("fuzz_outcomes.CPU_SECONDS", 0.2)
        monkeypatch.setattr("traceview.analysis.report.build_report", culprit)
        with pytest.raises(WrongOutcomeError, match=words):
            judge(trace, "report")


def test_changes_change_what_they_say(tmp_path: Path) -> None:
    def first(changes: list, query: str) -> object:
        path = write_damaged(tmp_path / "trace.sqlite", "3.20.3", changes)
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(query).fetchone()[0]

    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    assert first([SetCell(kernels, "start", 0, None)], f"SELECT start FROM {kernels}") is None
    assert first([SetCell("StringIds", "value", None, RawText(b"\xff"))], "SELECT hex(value) FROM StringIds") == "FF"
    before = first([], f"SELECT start FROM {kernels}")
    assert first([Shift(kernels, "start", None, 5)], f"SELECT start FROM {kernels}") == before + 5
    assert first([Mark("hello")], "SELECT COUNT(*) FROM NVTX_EVENTS WHERE text = 'hello'") == 1
    whole = write_damaged(tmp_path / "trace.sqlite", "3.20.3", []).read_bytes()
    for change in (Cut(3), Fill(2, 255), Flip(-1, 1)):
        assert write_damaged(tmp_path / "trace.sqlite", "3.20.3", [change]).read_bytes() != whole


@pytest.mark.parametrize("name", ["x", "forward 0"])
def test_a_million_nested_ranges(name: str, tmp_path: Path) -> None:
    depth = 1_000_000
    times = {"loads": [[(depth + 99, depth + 200)]], "computes": [[(depth + 200, depth + 300)]]}
    path = layered_forward(TraceBuilder(), start=depth, **times).write(tmp_path / "deep.sqlite")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE number(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < ?) "
            "INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid) "
            "SELECT n, ? - n, 59, ?, (SELECT globalTid FROM NVTX_EVENTS LIMIT 1) FROM number",
            (depth - 1, 4 * depth, name),
        )
    began = time.process_time()
    outcome = run_bounded(["report", str(path), "--format", "json"], path, cpu_seconds=60)
    assert outcome.code == 0
    assert time.process_time() - began < 60
