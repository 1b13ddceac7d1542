"""``traceview save`` and ``traceview history``: one row per forward and measure, and how a measure went."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from noisy_traces import Noise, noisy_trace

from traceview.analysis.report import build_report
from traceview.cli import run
from traceview.reading import read

SAMPLES = Path(__file__).parents[2] / "sample_traces"
HEALTHY, FAULTY = SAMPLES / "healthy.sqlite", SAMPLES / "device_sync.sqlite"


def traceview(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(list(map(str, arguments)))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the place for a file of runs, in a folder where no commit is checked out."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path / "runs.db"


@pytest.fixture
def three_runs(database: Path) -> Path:
    for commit, trace in (("aaa111", HEALTHY), ("bbb222", FAULTY), ("ccc333", HEALTHY)):
        assert traceview("save", trace, "--to", database, "--label", "nightly", "--commit", commit) == 0
    return database


def test_a_row_per_forward_and_measure_keyed_by_content_and_commit(three_runs: Path) -> None:
    digest = hashlib.sha256(HEALTHY.read_bytes()).hexdigest()
    assert rows(three_runs, "SELECT trace_sha256, commit_sha, label, trace, forwards, layers, gpu FROM runs")[0] == (
        digest,
        "aaa111",
        "nightly",
        "healthy.sqlite",
        3,
        8,
        "NVIDIA H200",
    )
    makespans = rows(
        three_runs,
        "SELECT forward, value, unit, warmup FROM measures JOIN runs ON runs.id = run "
        "WHERE commit_sha = 'aaa111' AND measure = 'makespan_ns' ORDER BY forward",
    )
    assert [(forward, warmup) for forward, _, _, warmup in makespans] == [(1, 1), (2, 0), (3, 0), (4, 0)]
    report = build_report(read(HEALTHY))
    expected = [(one.index, one.measures.makespan_ns, "ns") for one in report.forwards]
    assert [row[:3] for row in makespans] == expected
    assert rows(three_runs, "SELECT count(*) FROM measured WHERE measure = 'layer_load_busy_ns'") == [(3 * 3 * 8,)]
    found = [(one.id, one.severity, one.cost_ns) for one in build_report(read(FAULTY)).findings]
    assert rows(three_runs, "SELECT finding, severity, cost_ns FROM findings ORDER BY cost_ns DESC") == found
    assert found[0][0] == "accidental_sync"


def test_saving_again_replaces_and_keeps_the_date(three_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def everything() -> list[list[tuple[Any, ...]]]:
        return [rows(three_runs, f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in ("runs", "measures")]

    before = everything()
    capsys.readouterr()
    assert traceview("save", HEALTHY, "--to", three_runs, "--label", "nightly", "--commit", "aaa111") == 0
    assert capsys.readouterr().out.startswith("Replaced 3 measured forwards of healthy.sqlite")
    assert everything() == before


def test_the_commit_is_the_one_checked_out_where_it_runs(database: Path, tmp_path: Path) -> None:
    assert traceview("save", HEALTHY, "--to", database) == 0
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert traceview("save", HEALTHY, "--to", database) == 0
    assert rows(database, "SELECT commit_sha, label FROM runs ORDER BY commit_sha") == [
        (None, "healthy"),
        (head, "healthy"),
    ]


def test_history_tells_first_how_it_stands(three_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert traceview("history", three_runs) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("makespan: ")
    assert "in the last of 3 runs, improved against the one before (-" in lines[0]
    assert "0 since the first, same." in " ".join(lines[:2])
    assert sum("regressed" in line for line in lines) == 1


def test_history_as_json_of_a_layer(three_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    options = ("--measure", "layer_load_busy", "--layer", "3", "--format", "json")
    assert traceview("history", three_runs, *options) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["schema"], made["measure"], made["subject"]) == (
        "traceview.history/1",
        "layer_load_busy_ns",
        "layer 3",
    )
    assert [(one["commit"], one["n"], one["verdict"]) for one in made["runs"]] == [
        ("aaa111", 3, "same"),
        ("bbb222", 3, "same"),
        ("ccc333", 3, "same"),
    ]
    assert traceview("history", three_runs, "--label", "weekly") == 2


@pytest.mark.parametrize(("name", "magic"), [("h.png", b"\x89PNG"), ("h.svg", b"<?xml"), ("h.pdf", b"%PDF")])
def test_history_draws_a_picture(name: str, magic: bytes, three_runs: Path, tmp_path: Path) -> None:
    assert traceview("history", three_runs, "--plot", tmp_path / name) == 0
    assert (tmp_path / name).read_bytes().startswith(magic)
    assert traceview("history", three_runs, "--plot", tmp_path / name) == 1
    assert traceview("history", three_runs, "--plot", tmp_path / "h.jpg") == 2


def test_what_is_no_file_of_runs_stays_as_it_is(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, text = tmp_path / "trace.sqlite", tmp_path / "notes.txt"
    copy.write_bytes(FAULTY.read_bytes())
    text.write_text("no database at all, but longer than the header of one" * 10)
    before = copy.read_bytes(), text.read_bytes()
    assert traceview("save", HEALTHY, "--to", copy) == 2
    assert traceview("save", HEALTHY, "--to", text) == 1
    assert traceview("save", HEALTHY, "--to", HEALTHY) == 2
    assert traceview("history", copy) == 2
    assert traceview("history", text) == 1
    assert traceview("history", database) == 1
    assert (copy.read_bytes(), text.read_bytes()) == before
    assert not database.exists()
    errors = capsys.readouterr().err.splitlines()
    assert len(errors) == 6
    assert "save a run first" in errors[-1]


@pytest.mark.parametrize(
    ("change", "code", "told"),
    [
        ("DELETE FROM runs", 1, "holds no runs yet"),
        ("DROP VIEW measured; ALTER TABLE runs DROP COLUMN gpu", 1, "another version of traceview made it"),
        ("UPDATE runs SET gpu = x'00ff', layers = 'many', saved_at = NULL, label = 7", 0, ""),
        ("UPDATE measures SET value = NULL WHERE forward = 2", 0, "2 against 2 samples"),
        ("UPDATE measures SET value = 9e999 WHERE forward = 2", 0, "2 against 2 samples"),
        ("UPDATE measures SET value = 'abc' WHERE forward = 2", 0, "2 against 2 samples"),
    ],
)
def test_what_another_program_wrote_into_it_is_left_out_or_told(
    change: str, code: int, told: str, three_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(three_runs)) as connection:
        connection.executescript(change)
    capsys.readouterr()
    assert traceview("history", three_runs) == code
    out, err = capsys.readouterr()
    assert told in " ".join((out + err).split())
    assert len(err.splitlines()) == bool(code)


def test_a_file_that_another_program_holds_is_not_blamed(
    three_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("traceview.history._BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(three_runs, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert traceview("history", three_runs) == 1
        assert traceview("save", HEALTHY, "--to", three_runs) == 1
    assert capsys.readouterr().err.count("another program is using it: try again when that is done") == 2


def test_a_commit_is_saved_by_its_full_name_however_it_was_typed(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    assert traceview("save", HEALTHY, "--to", database) == 0
    assert capsys.readouterr().out.endswith("as healthy, without a commit.\n")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "m"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    for typed in (head, head[:7], "HEAD", "1f3c9d2"):
        assert traceview("save", HEALTHY, "--to", database, "--commit", typed) == 0
    assert sorted(commit or "" for (commit,) in rows(database, "SELECT commit_sha FROM runs")) == sorted(
        ["", head, "1f3c9d2"]
    )
    for typed in ("a\nb", "two words", "--all"):
        assert traceview("save", HEALTHY, "--to", database, "--commit", typed) == 2
        assert "is no name of a commit" in capsys.readouterr().err


def test_what_clocks_change_is_no_change_between_saved_runs_either(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, slower in enumerate((1.0, 1.1, 1.4)):
        noise = Noise(compute_ns=1_290_000 * slower)
        trace = noisy_trace(tmp_path / f"{number}.sqlite", number, forwards=5, noise=noise)
        assert traceview("save", trace, "--to", database, "--commit", f"c{number}") == 0
    capsys.readouterr()
    assert traceview("history", database, "--measure", "compute_busy", "--format", "json") == 0
    verdicts = [one["verdict"] for one in json.loads(capsys.readouterr().out)["runs"]]
    assert verdicts == ["same", "same", "regressed"]
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("DROP TABLE kernels")
    assert traceview("history", database, "--measure", "compute_busy", "--format", "json") == 0
    verdicts = [one["verdict"] for one in json.loads(capsys.readouterr().out)["runs"]]
    assert verdicts == ["same", "regressed", "regressed"]


def test_a_label_ends_up_harmless_on_the_terminal(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert traceview("save", HEALTHY, "--to", database, "--label", "\x1b[31mred") == 0
    assert "\x1b" not in capsys.readouterr().out
    assert traceview("save", HEALTHY, "--to", database, "--label", "") == 0
    assert rows(database, "SELECT label FROM runs") == [("healthy",)]


def test_the_first_layer_of_other_bytes_is_not_compared(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, trace in enumerate(("layer_first", "healthy")):
        assert traceview("save", SAMPLES / f"{trace}.sqlite", "--to", database, "--commit", f"c{number}") == 0
    capsys.readouterr()
    assert traceview("history", database, "--measure", "first_layer_exposed") == 0
    written = " ".join(capsys.readouterr().out.split())
    assert "cannot tell against the one before (-69 %; other bytes: " in written


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--label", "nihgtly"], "did you mean nightly"),
        (["--measure", "layer_load_busy"], "name one: --layer 0"),
        (["--layer", "3"], "--measure layer_load_busy --layer 3"),
        (["--measure", "layer_load_busy", "--layer", "99"], "there is: 0, 1, 2, 3, 4, 5, 6, 7"),
    ],
)
def test_what_no_run_has_says_what_there_is(
    options: list[str], told: str, three_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert traceview("history", three_runs, *options) == 2
    assert told in capsys.readouterr().err


def test_an_unreadable_trace_saves_nothing(database: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(HEALTHY.read_bytes()[:50_000])
    assert traceview("save", cut, "--to", database) == 1
    assert not database.exists()


def test_an_unknown_measure_lists_those_that_there_are(three_runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert traceview("history", three_runs, "--measure", "makspan") == 2
    assert "did you mean makespan_ns" in capsys.readouterr().err
