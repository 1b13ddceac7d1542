"""A slimmed trace says the same of its forwards as the whole, and appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from export_writer import change
from layouts import LAYOUTS
from slim_scenes import MS, keeping, report, rows, scene, status
from trace_builder import TraceBuilder

import traceview
from traceview.analysis.forwards import ForwardOptions, find_forwards
from traceview.errors import OutputError, SelectionError
from traceview.slimming import slim

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("layout", LAYOUTS)
def test_keeps_what_the_report_says_in_every_layout(layout: str, tmp_path: Path) -> None:
    path = scene(layout, range(-1, 2), layers=2).write(tmp_path / "run.sqlite")
    for selected in ((None, None), (1, 2)):
        made = slim(path, tmp_path / "small.sqlite", keeping(*selected, verify=True, force=True))
        assert made.compared > 100
        assert traceview.read(tmp_path / "small.sqlite").capture.schema_version == (
            None if layout == "none" else layout
        )


@pytest.mark.parametrize("selection", ["0:1", "1:3", "2:", ":-1", "4:5"])
def test_kept_forwards_keep_every_number(selection: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    assert status("slim", str(path), str(output), "--forwards", selection) == 0
    capsys.readouterr()
    wanted, found = report(path, capsys, "--forwards", selection), report(output, capsys)
    assert found["forwards"] == wanted["forwards"]
    assert found["summary"] == wanted["summary"]
    assert found["forwards"]
    assert [sync for sync in found["syncs"] if sync["forward"] is not None] == [
        sync for sync in wanted["syncs"] if sync["forward"] in {one["index"] for one in wanted["forwards"]}
    ]
    # a slimmed trace can be slimmed again, and is counted as the whole was
    index = found["forwards"][-1]["index"]
    again = tmp_path / "again.sqlite"
    assert status("slim", str(output), str(again), "--forwards", f"{index}:{index + 1}", "--verify") == 0
    capsys.readouterr()
    last = report(path, capsys, "--forwards", f"{index}:{index + 1}")["forwards"]
    assert report(again, capsys)["forwards"] == last


def test_the_first_kept_forward_does_not_become_warmup(tmp_path: Path) -> None:
    path = scene(forwards=range(4)).write(tmp_path / "run.sqlite")
    assert [one.warmup for one in find_forwards(traceview.read(path))] == [True, False, False, False]
    slim(path, tmp_path / "small.sqlite", keeping(2, 4))
    found = find_forwards(traceview.read(tmp_path / "small.sqlite"))
    assert [(one.name, one.index, one.warmup) for one in found] == [("forward 2", 2, False), ("forward 3", 3, False)]
    chosen = find_forwards(traceview.read(tmp_path / "small.sqlite"), ForwardOptions(warmup=1, selected=(3, 4)))
    assert [(one.name, one.warmup) for one in chosen] == [("forward 3", False)]


def test_a_number_that_depends_on_the_other_forwards_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    assert status("slim", str(path), str(output), "--forwards", "3:4") == 0
    assert "compute inflation of 1 of them" in capsys.readouterr().err
    whole, kept = report(path, capsys)["forwards"][3], report(output, capsys)["forwards"][0]
    assert {name for name in whole if whole[name] != kept[name]} == {"compute_inflation_ns"}
    assert status("slim", str(path), str(output), "--force", "--verify") == 0
    assert capsys.readouterr().err == ""


def test_loads_of_another_thread_and_the_record_they_wait_for_stay(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(3):
        start = (number + 1) * 100_000
        loader = {"thread": 99}
        builder.range(f"load layer {0}", start - 5_000, start - 4_000, **loader)
        builder.copy(start + 10, start + 5_000, call=(start - 4_900, start - 4_800), **loader)
        builder.record(number, stream=13, sync=number + 50, call=(start - 4_700, start - 4_600), **loader)
        builder.wait(number, stream=7, sync=number + 50, call=(start + 20, start + 30))
        builder.range("compute layer 0", start + 40, start + 90)
        builder.kernel(start + 5_010, start + 9_000, call=(start + 50, start + 60))
        builder.range(f"forward {number}", start, start + 10_000)
    path = builder.write(tmp_path / "run.sqlite")
    slim(path, tmp_path / "small.sqlite", keeping(1, 2, verify=True))
    [kept] = find_forwards(traceview.read(tmp_path / "small.sqlite"))
    assert (kept.name, kept.index, sorted(kept.role.tolist())) == ("forward 1", 1, [0, 1])


def test_forwards_that_run_beside_the_kept_ones_are_no_forwards_of_the_result(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for process, shift in ((100, 0), (200, 4_000)):
        for number in range(3):
            start, one = number * 10_000 + shift, {"process": process}
            builder.range(f"forward {number}", start, start + 9_000, **one)
            builder.range("compute layer 0", start + 10, start + 90, **one)
            builder.kernel(start + 100, start + 8_000, call=(start + 20, start + 30), **one)
    path = builder.write(tmp_path / "ranks.sqlite")
    slim(path, tmp_path / "small.sqlite", keeping(2, 4, verify=True))
    found = find_forwards(traceview.read(tmp_path / "small.sqlite"))
    assert [(one.process, one.name, one.index) for one in found] == [(100, "forward 1", 2), (200, "forward 1", 3)]


def unannotated(path: Path) -> Path:
    """Write passes of two layers that only the sequence of their kernels tells apart."""
    builder = TraceBuilder()
    for number in range(6):
        at = number * 10_000
        builder.copy(at + 100, at + 5_000, call=(at + 1, at + 2))
        builder.record(number, stream=13, sync=number + 1, call=(at + 3, at + 4))
        builder.wait(number, stream=7, sync=number + 1, call=(at + 5, at + 6))
        builder.kernel(at + 5_010, at + 9_000, name="ab"[number % 2], call=(at + 7, at + 8))
    return builder.write(path)


def test_a_cut_that_would_change_the_forwards_is_refused(tmp_path: Path) -> None:
    path, output = unannotated(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    assert len(find_forwards(traceview.read(path))) == 3
    with pytest.raises(OutputError, match=r"forward 0 \(unnamed\) would change"):
        slim(path, output, keeping(0, 1))
    assert not output.exists()


def test_a_trace_without_forwards_is_cut_by_time(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(5 * MS, 6 * MS, call=(1, 2)).kernel(90 * MS, 91 * MS, call=(3, 4)).write(
        tmp_path / "run.sqlite"
    )  # fmt: skip
    with pytest.raises(SelectionError, match="no forward"):
        slim(path, tmp_path / "small.sqlite", keeping(0, 1))
    slim(path, tmp_path / "small.sqlite", keeping(window_ms=(50.0, float("inf")), verify=True))
    assert traceview.read(tmp_path / "small.sqlite").operations.start.tolist() == [90 * MS]
    assert traceview.read(tmp_path / "small.sqlite").calls.start.tolist() == [3]


def test_metrics_stay_only_on_request_and_around_the_part(tmp_path: Path) -> None:
    builder = scene()
    for at in range(0, 600, 10):
        builder.row("GPU_METRICS", timestamp=at * MS, rawTimestamp=at * MS, typeId=1, metricId=2, value=at % 100)
    builder.row("TARGET_INFO_GPU_METRICS", typeId=1, typeName="GPU 0", metricId=2, metricName="PCIe RX Throughput")
    path, output = builder.write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    slim(path, output, keeping(1, 2))
    assert rows(output, "SELECT name FROM sqlite_master WHERE name LIKE '%METRIC%'") == []
    slim(path, output, keeping(1, 2, keep_metrics=True, force=True))
    times = [at for (at,) in rows(output, "SELECT timestamp FROM GPU_METRICS ORDER BY 1")]
    kept = traceview.read(output)
    assert times[0] <= kept.start_ns < times[1]
    assert times[-2] < kept.end_ns <= times[-1]
    assert rows(output, "SELECT metricName FROM TARGET_INFO_GPU_METRICS") == [("PCIe RX Throughput",)]


def test_the_output_is_never_the_input_and_never_overwritten_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    os.link(path, tmp_path / "same.sqlite")
    for same in (path, tmp_path / "same.sqlite"):
        assert status("slim", str(path), str(same), "--force") == 2
        assert "is the input" in capsys.readouterr().err
    output.write_text("mine")
    assert status("slim", str(path), str(output)) == 1
    assert "--force" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert status("slim", str(path), str(output), "--force") == 0
    assert traceview.read(output).capture.kept is None
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.sqlite", "same.sqlite", "small.sqlite"]


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"no database", "not an SQLite file")], ids=["empty", "text"]
)
def test_an_unreadable_input_leaves_nothing(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(content)
    assert status("slim", str(path), str(tmp_path / "small.sqlite")) == 1
    assert words in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["run.sqlite"]


def test_a_full_disk_is_not_a_damaged_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    connect = sqlite3.connect

    def into_a_small_place(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.execute("PRAGMA max_page_count = 4")
        return connection

    with monkeypatch.context() as changed:
        changed.setattr("traceview.nsys.slim.sqlite3.connect", into_a_small_place)
        assert status("slim", str(path), str(output)) == 1
    said = capsys.readouterr().err
    assert "cannot hold the result: database or disk is full: make room there" in said
    assert "damaged" not in said
    assert not output.exists()


def test_verify_refuses_a_result_that_says_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"

    def tampered(*arguments: Any, **options: Any) -> Any:
        scrubber = write_slim(*arguments, **options)
        change(arguments[2], 'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" + 1')
        return scrubber

    from traceview.nsys.slim import write_slim

    monkeypatch.setattr("traceview.slimming.write_slim", tampered)
    slim(path, output, keeping(1, 3))
    output.unlink()
    with pytest.raises(OutputError, match=r"would not say the same in \d+ places: forwards\[0\]"):
        slim(path, output, keeping(1, 3, verify=True))
    assert not output.exists()


def test_a_table_with_a_version_in_its_name_is_kept_under_its_plain_name(tmp_path: Path) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    path = scene().renamed(table, f"{table}_V5").write(tmp_path / "run.sqlite")
    slim(path, tmp_path / "small.sqlite", keeping(1, 3, verify=True))
    assert rows(tmp_path / "small.sqlite", f"SELECT COUNT(*) > 0 FROM {table}") == [(1,)]
