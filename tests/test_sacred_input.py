"""Whatever a command does, the trace stays as it was, and what is written is whole or not there."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fuzz_outcomes import COMMANDS
from trace_builder import TraceBuilder

from traceview.cli import run

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).parents[1] / "sample_traces"
EVERY_SAMPLE = sorted(path.stem for path in SAMPLES.glob("*.sqlite"))
QUICK = ("report", "report json", "report html", "doctor", "check", "save")
WRITING = {name: words for name, words in COMMANDS.items() if any(word.startswith("OUT") for word in words)}


def words_of(name: str, trace: Path, folder: Path) -> list[str]:
    """Return the arguments of one of the commands; what it writes goes to ``folder``."""
    return [word.replace("OUT", f"{folder}/out") if word.startswith("OUT") else str(trace) if word == "IN" else word
            for word in COMMANDS[name]]  # fmt: skip


def status(*words: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        run([str(word) for word in words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def state(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Return content, mode and time of every file in a folder."""
    found = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        path.name: (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mode, path.stat().st_mtime_ns)
        for path in found
    }


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Path]:
    """Return a trace that is read-only, in a folder that is too."""
    folder = tmp_path / "kept"
    folder.mkdir()
    trace = Path(shutil.copyfile(SAMPLES / "item.sqlite", folder / "trace.sqlite"))
    trace.chmod(0o444)
    folder.chmod(0o555)
    yield trace
    folder.chmod(0o755)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_leaves_a_read_only_trace_as_it_was(name: str, kept: Path, tmp_path: Path) -> None:
    before = state(kept.parent)
    assert status(*words_of(name, kept, tmp_path)) in {0, 1, 2, 3}
    assert state(kept.parent) == before


@pytest.mark.parametrize("sample", EVERY_SAMPLE)
def test_every_sample_stays_as_it_was(sample: str, tmp_path: Path) -> None:
    """The samples themselves, which lie where files may be written: no copies."""
    trace = SAMPLES / f"{sample}.sqlite"
    before = state(SAMPLES)
    for name in QUICK:
        assert status(*words_of(name, trace, tmp_path)) in {0, 1, 3}
        (tmp_path / "out.db").unlink(missing_ok=True)
    assert state(SAMPLES) == before


@pytest.fixture
def three_names(tmp_path: Path) -> dict[str, Path]:
    """Return a trace under its own name, and under those of a symbolic and of a hard link."""
    names = {kind: tmp_path / f"{kind}.sqlite" for kind in ("itself", "symlink", "hardlink")}
    shutil.copyfile(SAMPLES / "item.sqlite", names["itself"])
    names["symlink"].symlink_to(names["itself"])
    os.link(names["itself"], names["hardlink"])
    return names


ONTO = {
    "report": ("report", "IN", "-o", "OUT", "--force"),
    "budget": ("budget", "IN", "-o", "OUT", "--force"),
    "slim": ("slim", "IN", "OUT", "--force"),
    "save": ("save", "IN", "--to", "OUT"),
    "check --junit": ("check", "IN", "--junit", "OUT"),
    "check --sarif": ("check", "IN", "--sarif", "OUT"),
    "check --baseline": ("check", str(SAMPLES / "item.sqlite"), "--baseline", "IN", "--junit", "OUT"),
    "timeline": ("timeline", "IN", "-o", "OUT.svg", "--force"),
    "plot": ("plot", "overlap", "IN", "-o", "OUT.svg", "--force"),
    "report --topology": ("report", str(SAMPLES / "item.sqlite"), "--topology", "IN", "-o", "OUT", "--force"),
    "check --budget": ("check", str(SAMPLES / "item.sqlite"), "--budget", "IN", "--junit", "OUT"),
    "report --cache": ("report", "IN", "--cache", "OUT"),
    "export": ("export", "IN", "OUT", "--to", "csv", "--force"),
    "history --plot": ("history", "IN", "--plot", "OUT.svg", "--force"),
}
"""Every option that names a file to write, pointed at what is read."""


@pytest.mark.parametrize("kind", ["itself", "symlink", "hardlink"])
@pytest.mark.parametrize("name", ONTO)
def test_nothing_is_written_onto_the_input(
    name: str, kind: str, three_names: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    output = three_names[kind]
    if any(word == "OUT.svg" for word in ONTO[name]):
        picture = output.with_suffix(".svg")
        picture.symlink_to(output)
        output = picture
    before = three_names["itself"].read_bytes()
    words = [str(output) if word.startswith("OUT") else word for word in ONTO[name]]
    assert status(*(str(three_names["itself"]) if word == "IN" else word for word in words)) in {1, 2, 3}
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert three_names["itself"].read_bytes() == before
    assert three_names["symlink"].is_symlink()


def test_a_folder_of_exports_does_not_hold_the_trace(tmp_path: Path) -> None:
    """``export`` names its files itself: one of them may be the trace."""
    trace = Path(shutil.copyfile(SAMPLES / "item.sqlite", tmp_path / "ranges.csv"))
    before = trace.read_bytes()
    assert status("export", trace, tmp_path, "--to", "csv", "--force") == 2
    assert trace.read_bytes() == before
    assert list(tmp_path.iterdir()) == [trace]


@contextmanager
def held(trace: Path, how: str) -> Iterator[None]:
    """Hold a trace as another program does: with a lock, in a transaction that has written, in WAL mode."""
    with closing(sqlite3.connect(trace, isolation_level=None)) as other:
        if how == "in WAL mode":
            other.execute("PRAGMA journal_mode = WAL")
        other.execute("BEGIN EXCLUSIVE" if how == "locked" else "BEGIN IMMEDIATE")
        if how != "locked":
            other.execute("CREATE TABLE half (x)")
            other.execute("INSERT INTO half VALUES (zeroblob(9000))")
        yield
        other.execute("ROLLBACK")


@pytest.mark.parametrize(("how", "words"), [("locked", ""), ("in a transaction", "still being written"),
                                            ("in WAL mode", "still being written")])  # fmt: skip
def test_a_trace_that_another_program_holds_is_read_or_refused_and_not_waited_for(
    how: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = Path(shutil.copyfile(SAMPLES / "item.sqlite", tmp_path / "trace.sqlite"))
    with held(trace, how):
        before = state(tmp_path)
        assert status("report", trace) == (1 if words else 0)
        told = capsys.readouterr().err
        assert words in told
        assert len(told.splitlines()) == bool(words)
        assert state(tmp_path) == before


def _full() -> None:
    """Let no file of this process grow beyond a few bytes, as on a full disk; the signal becomes an error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a disk of 64 KiB; skips where none can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if os.geteuid() or subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk, and not everywhere")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def write_to(name: str, folder: Path, trace: Path, **options: object) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "traceview", *words_of(name, trace, folder)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=120, **options)  # type: ignore[call-overload]


FILLING = ("timeline", "plot overlap", "export csv", "export parquet", "export perfetto", "slim", "check", "save")


@pytest.mark.parametrize("name", FILLING)
def test_a_file_that_cannot_grow_is_one_error_and_no_file(name: str, tmp_path: Path) -> None:
    done = write_to(name, tmp_path, SAMPLES / "item.sqlite", preexec_fn=_full)
    assert done.returncode == (2 if name == "check" else 1)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("traceview: ")
    assert [path.name for path in tmp_path.iterdir() if path.stat().st_size] == []


@pytest.mark.parametrize("name", FILLING)
def test_a_full_disk_is_one_error_and_keeps_what_was_there(name: str, small_disk: Path) -> None:
    _fill(small_disk)
    done = write_to(name, small_disk, SAMPLES / "item.sqlite")
    assert done.returncode == (2 if name == "check" else 1), done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert [path.name for path in small_disk.iterdir() if path.stat().st_size] == ["filler"]


@pytest.mark.parametrize("name", ["report", "report html"])
def test_a_full_standard_output_is_one_error(name: str) -> None:
    with Path("/dev/full").open("w") as full:
        line = [sys.executable, "-m", "traceview", *words_of(name, SAMPLES / "item.sqlite", Path())]
        done = subprocess.run(line, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1


def test_a_full_cache_costs_the_cache_alone(small_disk: Path) -> None:
    _fill(small_disk)
    line = [sys.executable, "-m", "traceview", "report", str(SAMPLES / "item.sqlite"), "--cache", str(small_disk / "c")]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert "could not be kept" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_trace_on_a_full_disk_is_read(small_disk: Path, tmp_path: Path) -> None:
    trace = TraceBuilder().kernel(0, 9, call=(1, 2)).write(tmp_path / "trace.sqlite")
    if trace.stat().st_size > 60 << 10:
        change = sqlite3.connect(trace)
        change.execute("PRAGMA page_size = 512")
        change.execute("VACUUM")
        change.close()
    there = Path(shutil.copyfile(trace, small_disk / "trace.sqlite"))
    _fill(small_disk)
    before = state(small_disk)
    assert write_to("report", tmp_path, there).returncode == 0
    assert state(small_disk) == before


def _fill(disk: Path) -> None:
    """Write to a disk until nothing more fits."""
    with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
        while filler.write(b"x" * 4096):
            pass
