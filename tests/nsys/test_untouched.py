"""Reading never changes the user's file by a byte and writes nothing beside it."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from trace_builder import TraceBuilder

import traceview

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def export(tmp_path: Path) -> Path:
    builder = TraceBuilder().kernel(0, 10, call=(1, 2)).copy(3, 4).range("forward 0", 0, 9)
    builder.renamed("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMCPY_V2")
    return builder.write(tmp_path / "trace.sqlite")


def state(folder: Path) -> list[tuple[str, str, int, int]]:
    """Return name, content, mode and time of every file in a folder."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return [
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in files
    ]


def test_the_file_and_its_folder_stay_as_they_were(export: Path) -> None:
    before = state(export.parent)
    assert len(traceview.read(export).operations) == 2
    assert state(export.parent) == before


@pytest.fixture
def read_only(export: Path) -> Iterator[Path]:
    export.chmod(0o444)
    export.parent.chmod(0o555)
    yield export
    export.parent.chmod(0o755)


def test_a_read_only_file_in_a_read_only_folder_is_read(read_only: Path) -> None:
    assert len(traceview.read(read_only).operations) == 2


def test_no_file_is_opened_for_writing(export: Path) -> None:
    """An audit hook sees every open of the interpreter; a process of its own, since a hook cannot be taken away."""
    program = """
import os, sys
import traceview.reading
opened = []
def watch(event, arguments):
    if event == "open":
        name, mode, flags = arguments
        opened.append((str(name), mode, flags))
    elif event in ("os.mkdir", "os.rename", "os.remove", "shutil.copyfile", "tempfile.mkstemp", "tempfile.mkdtemp"):
        opened.append((event, "w", 0))
sys.addaudithook(watch)
traceview.reading.read(sys.argv[1])
writing = [one for one in opened if (one[1] and set(one[1]) & set("wax+")) or (one[2] & (os.O_WRONLY | os.O_RDWR))]
sys.exit(repr(writing) if writing or not opened else 0)
"""
    done = subprocess.run([sys.executable, "-c", program, export], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["a b.sqlite", "100%.sqlite", "what?.sqlite", "a#b.sqlite", "ä.sqlite", "-x.sqlite"])
def test_any_file_name_is_read_and_nothing_else_appears(export: Path, name: str) -> None:
    path = export.rename(export.with_name(name))
    before = state(path.parent)
    assert len(traceview.read(path).operations) == 2
    assert state(path.parent) == before


def test_a_relative_path_and_a_link_are_read(export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(export.parent)
    export.with_name("link.sqlite").symlink_to("trace.sqlite")
    assert len(traceview.read("trace.sqlite").operations) == 2
    assert len(traceview.read("link.sqlite").operations) == 2
    assert str(traceview.read("link.sqlite").capture.path) == "link.sqlite"


def test_a_file_that_another_process_holds_locked_is_read(export: Path) -> None:
    with closing(sqlite3.connect(export, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert len(traceview.read(export).operations) == 2
        other.execute("ROLLBACK")


def test_the_connection_is_closed_when_reading_fails(export: Path) -> None:
    damaged = bytearray(export.read_bytes())
    damaged[4096:] = b"\xff" * len(damaged[4096:])
    export.write_bytes(damaged)
    with pytest.raises(traceview.errors.InputError):
        traceview.read(export)
    open_files = Path("/proc/self/fd")
    if open_files.is_dir():
        assert export not in {link.resolve() for link in open_files.iterdir()}
