"""The commands that write pictures and tables: files, endings, refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from drawn_scenes import eight_layers

from traceview.cli import run

if TYPE_CHECKING:
    from pathlib import Path

SIGNATURES = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF-"}


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return eight_layers(tmp_path_factory.mktemp("trace") / "eight.sqlite")


def status(*arguments: object) -> int:
    with pytest.raises(SystemExit) as ended:
        run([str(one) for one in arguments])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("style", SIGNATURES)
def test_the_ending_of_the_file_says_what_is_written(style: str, trace: Path, tmp_path: Path) -> None:
    assert status("timeline", trace, "-o", tmp_path / f"one.{style}", "--forward", "0", "--layers", "2:5") == 0
    assert status("plot", "accounting", trace, "-o", tmp_path / f"two.{style}") == 0
    for name in ("one", "two"):
        assert (tmp_path / f"{name}.{style}").read_bytes().startswith(SIGNATURES[style])


@pytest.mark.parametrize("what", ["overlap", "copies", "history"])
def test_each_measure_has_a_plot(what: str, trace: Path, tmp_path: Path) -> None:
    assert status("plot", what, trace, "-o", tmp_path / "plot.png") == 0


def test_the_html_report_is_written_by_the_command(trace: Path, tmp_path: Path) -> None:
    assert status("report", trace, "--format", "html", "-o", tmp_path / "report.html") == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "Timeline: worst and median forward" in page


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("perfetto", {"eight.pftrace"}),
        ("csv", {"README.md", "operations.csv", "holes.csv"}),
        ("parquet", {"README.md", "operations.parquet", "holes.parquet"}),
    ],
)
def test_an_export_fills_a_folder_and_never_overwrites(
    target: str, names: set[str], trace: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    assert status("export", trace, folder, "--to", target) == 0
    assert names <= {one.name for one in folder.iterdir()}
    before = {one.name: one.read_bytes() for one in folder.iterdir()}
    assert status("export", trace, folder, "--to", target) == 1
    assert {one.name: one.read_bytes() for one in folder.iterdir()} == before
    assert status("export", trace, folder, "--to", target, "--force") == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("timeline", "-o", "picture.gif"), 2, "end its name in .png, .svg or .pdf"),
        (("timeline", "-o", "picture"), 2, "end its name in .png, .svg or .pdf"),
        (("timeline",), 2, "Missing option '-o'"),
        (("timeline", "-o", "no/such/folder.png"), 1, "make it first"),
        (
            ("timeline", "-o", "picture.png", "--forward", "9"),
            2,
            "there is: 0 (forward 0), 1 (forward 1), 2 (forward 2)",
        ),
        (("timeline", "-o", "picture.png", "--layers", "8:"), 2, "there is: 0 to 7"),
        (("timeline", "-o", "picture.png", "--layers", "9:3"), 2, "there is: 0 to 7"),
        (("timeline", "-o", "picture.png", "--layers", "3"), 2, "is not of the form a:b"),
        (("export", "out", "--to", "csv", "--to", "parquet"), 2, "export once for each"),
    ],
)
def test_a_wrong_request_is_one_line_and_writes_nothing(
    arguments: tuple[str, ...],
    code: int,
    words: str,
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    command, *others = arguments
    assert status(command, trace, *others) == code
    complaint = capsys.readouterr().err
    assert words in complaint
    assert complaint.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_an_export_does_not_take_a_file_for_a_folder(trace: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    assert status("export", trace, tmp_path / "file", "--to", "csv") == 1
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize(
    ("module", "target"), [("perfetto.trace_builder.proto_builder", "perfetto"), ("pyarrow", "parquet")]
)
def test_a_missing_package_is_named_with_what_to_type(
    module: str,
    target: str,
    trace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    assert status("export", trace, tmp_path / "out", "--to", target) == 2
    assert f"pip install 'traceview[{target}]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_export_that_cannot_be_written_whole_leaves_nothing(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = []

    def full(handle: int) -> None:
        written.append(handle)
        if len(written) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    assert status("export", trace, tmp_path / "out", "--to", "csv") == 1
    assert "is the disk full?" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if path != trace] == []


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_printed_page_is_utf_8_as_it_says_whatever_the_terminal_uses(
    encoding: str, trace: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "traceview"]
    asked = ["report", trace, "--format", "html"]
    assert status(*asked, "-o", tmp_path / "page.html") == 0
    printed = subprocess.run(
        [*command, *map(str, asked)], check=True, capture_output=True, env={**os.environ, "PYTHONIOENCODING": encoding}
    )
    assert printed.stdout == (tmp_path / "page.html").read_bytes()


def test_a_picture_needs_no_backend_that_works(trace: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "traceview", "timeline", str(trace), "-o", str(tmp_path / "one.png")]
    subprocess.run(command, check=True, env={**os.environ, "MPLBACKEND": "no such backend"})
    assert (tmp_path / "one.png").read_bytes().startswith(SIGNATURES["png"])
