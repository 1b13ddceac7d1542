"""A cache gives what the file gives, whatever happens to the cache."""

from __future__ import annotations

import dataclasses
import io
import multiprocessing
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from trace_builder import TraceBuilder, layered_forward

from traceview import cache
from traceview.analysis.report import build_report
from traceview.cli import main
from traceview.errors import InputError, OutputError
from traceview.reading import read, read_through
from traceview.render.json import render

SAMPLES = sorted((Path(__file__).parents[1] / "sample_traces").glob("*.sqlite"))


@pytest.fixture
def trace_file(tmp_path):
    builder = layered_forward(TraceBuilder(), start=0, loads=[[(10, 90)]], computes=[[(100, 300)]])
    builder.stack(1, [("main", "app")]).api("cudaFree", 400, 500, callchainId=1).migration(600, 700)
    return builder.write(tmp_path / "t.sqlite")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


def assert_same(a, b, place="trace"):
    """Fail where two traces differ in any value, type or array element."""
    assert type(a) is type(b), place
    if dataclasses.is_dataclass(a):
        for field in dataclasses.fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name), f"{place}.{field.name}")
    elif isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, place
        assert a.tolist() == b.tolist(), place
    elif isinstance(a, tuple):
        assert len(a) == len(b), place
        for number, (one, other) in enumerate(zip(a, b, strict=True)):
            assert_same(one, other, f"{place}[{number}]")
    else:
        assert a == b, place


def no_reading(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("the file was read again")

    monkeypatch.setattr("traceview.reading.read_database", refuse)


def entries(folder):
    return sorted(folder.iterdir())


def test_the_second_time_the_file_is_not_read(trace_file, folder, monkeypatch):
    first = read_through(folder, trace_file)
    no_reading(monkeypatch)
    assert_same(read_through(folder, trace_file), first)
    assert_same(first, first)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_real_captures_come_back_whole(path, folder):
    read_through(folder, path)
    assert_same(read_through(folder, path), read(path))
    assert render(build_report(read_through(folder, path))) == render(build_report(read(path)))


def test_a_selection_is_made_after_the_cache(trace_file, folder):
    read_through(folder, trace_file)
    assert_same(
        read_through(folder, trace_file, window_ms=(0.0, 0.0002)).operations,
        read(trace_file, window_ms=(0.0, 0.0002)).operations,
    )


def test_another_content_is_another_trace(trace_file, folder, tmp_path):
    read_through(folder, trace_file)
    layered_forward(TraceBuilder(), start=0, loads=[[(10, 50)]], computes=[[(100, 300)]]).write(trace_file)
    assert_same(read_through(folder, trace_file), read(trace_file))
    assert len(entries(folder)) == 2


def test_a_moved_file_is_the_same_trace_under_its_new_name(trace_file, folder, tmp_path, monkeypatch):
    read_through(folder, trace_file)
    moved = Path(shutil.move(trace_file, tmp_path / "moved.sqlite"))
    no_reading(monkeypatch)
    assert read_through(folder, moved).capture.path == moved


def test_another_reader_reads_anew(trace_file, folder, monkeypatch):
    read_through(folder, trace_file)
    monkeypatch.setattr(cache, "reader_version", lambda: "other")
    read_through(folder, trace_file)
    assert len(entries(folder)) == 2


@pytest.mark.parametrize("damage", [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: b"x" * 500])
def test_a_damaged_entry_is_read_anew_and_mended(trace_file, folder, damage, monkeypatch):
    first = read_through(folder, trace_file)
    (entry,) = entries(folder)
    entry.write_bytes(damage(entry.read_bytes()))
    assert_same(read_through(folder, trace_file), first)
    no_reading(monkeypatch)
    assert_same(read_through(folder, trace_file), first)


def test_a_flipped_bit_is_noticed(trace_file, folder):
    first = read_through(folder, trace_file)
    (entry,) = entries(folder)
    data = bytearray(entry.read_bytes())
    for place in range(len(data) // 4, len(data), len(data) // 9):
        entry.write_bytes(bytes([*data[:place], data[place] ^ 16, *data[place + 1 :]]))
        assert_same(read_through(folder, trace_file), first)


def _forged(arrays, rest, change):
    """Return a whole container in which one array, or a word of the rest, is another one."""
    name, made = change
    if name in arrays:
        arrays[name] = made(arrays[name])
    else:
        assert name in rest
        rest = rest.replace(name, made)
    arrays["rest"] = np.frombuffer(rest.encode(), dtype=np.uint8)
    container = io.BytesIO()
    np.savez(container, **arrays)
    return container.getvalue()


@pytest.mark.parametrize(
    "change",
    [
        ("trace.operations.stream", lambda column: column + 99),
        ("trace.operations.name", lambda column: column - 99),
        ("trace.operations.launch", lambda column: column[:-1]),
        ("trace.operations.start", lambda column: column[::-1]),
        ("trace.operations.end", lambda column: column - 10_000),
        ("trace.operations.memory", lambda column: column + 99),
        ("trace.calls.stack", lambda column: column + 99),
        ("trace.calls.thread", lambda column: column.astype(float)),
        ("trace.ranges.domain", lambda column: column.reshape(-1, 1)),
        ('"main"', "17"),
        ('"names": {"tuple": [', '"names": {"tuple": [null, '),
        ('{"class": "Stream"', '{"class": "Thread"'),
    ],
    ids=lambda change: change[0],
)
def test_a_forged_entry_is_read_anew(trace_file, folder, change):
    first = read_through(folder, trace_file)
    (entry,) = entries(folder)
    with np.load(entry) as stored:
        arrays = dict(stored)
    entry.write_bytes(_forged(arrays, arrays["rest"].tobytes().decode(), change))
    assert_same(read_through(folder, trace_file), first)


def test_a_full_disk_costs_the_cache_and_not_the_answer(trace_file, folder, monkeypatch):
    def full(place, *_, **__):
        place.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        found = read_through(folder, trace_file)
    assert_same(found, read(trace_file))
    assert entries(folder) == []


def test_the_command_line_says_so_in_one_line(trace_file, folder, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    result = CliRunner().invoke(main, ["report", str(trace_file), "--cache", str(folder), "--format", "json"])
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"traceview: the trace could not be kept in {folder}: No space left on device"
    ]


def test_an_interrupted_write_leaves_nothing_that_counts(trace_file, folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(np.lib.format, "write_array", interrupted)
    with pytest.raises(KeyboardInterrupt):
        read_through(folder, trace_file)
    assert entries(folder) == []


def test_a_file_that_cannot_be_read_keeps_nothing(folder, tmp_path):
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(b"no database")
    with pytest.raises(InputError):
        read_through(folder, broken)
    with pytest.raises(InputError, match="no such file"):
        read_through(folder, tmp_path / "missing.sqlite")
    assert not folder.exists()


def test_a_file_is_no_folder(trace_file, tmp_path):
    with pytest.raises(OutputError, match="is no folder"):
        read_through(trace_file, trace_file)


def _race(arguments):
    folder, path = arguments
    return len(read_through(folder, path).operations)


def test_processes_that_race_all_answer_and_leave_one_entry(trace_file, folder):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert set(pool.map(_race, [(folder, trace_file)] * 12)) == {2}
    assert len(entries(folder)) == 1
