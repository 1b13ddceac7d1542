"""Reports are exported by the user's own nsys to a temporary file; without one the error says what to run."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from trace_builder import TraceBuilder

import traceview
from traceview.analysis.report import ReportOptions
from traceview.errors import InputError, NsysError
from traceview.nsys.export import find_nsys
from traceview.slimming import SlimOptions, slim


@pytest.fixture(autouse=True)
def no_nsys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without nsys: an empty PATH but for the shell's own tools, no variable; temporary files are watched."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("NSYS", raising=False)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    return scratch


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "capture.nsys-rep"
    path.write_bytes(b"NVIDIA's own format")
    return path


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def working(tmp_path: Path) -> Path:
    """An nsys that writes down how it was called and exports a small trace."""
    trace = TraceBuilder().kernel(0, 10).write(tmp_path / "ready.sqlite")
    return script(tmp_path / "bin" / "nsys", f'echo "$@" > "{tmp_path}/called"\ncp "{trace}" "$5"')


def test_a_report_is_exported_and_read(report: Path, working: Path, no_nsys: Path, tmp_path: Path) -> None:
    trace = traceview.read(report, nsys=str(working))
    assert trace.operations.end.tolist() == [10]
    assert trace.capture.path == report
    words = (tmp_path / "called").read_text().split()
    assert words[:4] == ["export", "--type", "sqlite", "--output"]
    assert words[-1] == str(report)
    assert list(no_nsys.iterdir()) == []
    assert report.read_bytes() == b"NVIDIA's own format"


def test_nothing_is_written_beside_the_report(report: Path, working: Path) -> None:
    before = sorted(path.name for path in report.parent.iterdir())
    traceview.read(report, nsys=str(working))
    assert sorted(path.name for path in report.parent.iterdir() if path.name != "called") == before


def test_an_old_report_is_one_too(working: Path, tmp_path: Path) -> None:
    (tmp_path / "old.qdrep").write_bytes(b"older")
    assert len(traceview.read(tmp_path / "old.qdrep", nsys=str(working)).operations) == 1


def test_the_environment_names_the_program(report: Path, working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NSYS", str(working))
    assert len(traceview.read(report).operations) == 1


def test_the_option_goes_before_the_environment(
    report: Path, working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSYS", str(script(tmp_path / "bad" / "nsys", "exit 3")))
    assert len(traceview.read(report, nsys=str(working)).operations) == 1


def test_the_path_is_searched(report: Path, working: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{working.parent}:/usr/bin:/bin")
    assert len(traceview.read(report).operations) == 1


def test_without_nsys_the_error_says_what_to_run(report: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("traceview.nsys.export.find_nsys", lambda given: find_nsys(given, root=tmp_path / "opt"))
    with pytest.raises(NsysError, match=r"is a report, and nsys was not found") as caught:
        traceview.read(report)
    assert f"nsys export --type sqlite -o trace.sqlite {report}" in caught.value.hint


@pytest.mark.parametrize("named", ["/nowhere/nsys", "no-such-program"])
def test_a_program_that_does_not_exist_is_named(report: Path, named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NsysError, match=f"--nsys names {named}"):
        traceview.read(report, nsys=named)
    monkeypatch.setenv("NSYS", named)
    with pytest.raises(NsysError, match=rf"\$NSYS names {named}"):
        traceview.read(report)


def test_a_failed_export_says_why_and_leaves_nothing(report: Path, tmp_path: Path, no_nsys: Path) -> None:
    failing = script(tmp_path / "bin" / "nsys", 'echo "some noise"\necho "the report is too new" >&2\nexit 1')
    with pytest.raises(NsysError, match=r"could not export .*: the report is too new"):
        traceview.read(report, nsys=str(failing))
    assert list(no_nsys.iterdir()) == []


def test_a_silent_failure_names_the_exit_code(report: Path, tmp_path: Path) -> None:
    with pytest.raises(NsysError, match="exit code 7"):
        traceview.read(report, nsys=str(script(tmp_path / "bin" / "nsys", "exit 7")))


def test_success_without_a_file_is_a_failure(report: Path, tmp_path: Path) -> None:
    with pytest.raises(NsysError, match="could not export"):
        traceview.read(report, nsys=str(script(tmp_path / "bin" / "nsys", "exit 0")))


@pytest.mark.parametrize(("made", "words"), [("echo no database", "is not an SQLite file"), ("printf ''", "is empty")])
def test_what_nsys_exports_is_checked_like_any_file_and_named_by_the_report(
    made: str, words: str, report: Path, tmp_path: Path
) -> None:
    nsys = script(tmp_path / "bin" / "nsys", f'{made} > "$5"')
    with pytest.raises(InputError, match=words) as caught:
        traceview.read(report, nsys=str(nsys))
    assert caught.value.message == f"the export of {report} {words}"
    with pytest.raises(InputError, match=words) as caught:
        slim(report, tmp_path / "small.sqlite", SlimOptions(ReportOptions(), nsys=str(nsys)))
    assert caught.value.message == f"the export of {report} {words}"


def test_a_program_that_is_none_is_an_error(report: Path, tmp_path: Path) -> None:
    broken = tmp_path / "bin" / "nsys"
    broken.parent.mkdir()
    broken.write_bytes(b"\x7fELF but not really")
    broken.chmod(0o755)
    with pytest.raises(NsysError, match="could not"):
        traceview.read(report, nsys=str(broken))


def test_a_missing_report_is_a_missing_file(tmp_path: Path, working: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        traceview.read(tmp_path / "none.nsys-rep", nsys=str(working))


def test_a_folder_named_like_a_report_is_a_directory(tmp_path: Path, working: Path) -> None:
    (tmp_path / "folder.nsys-rep").mkdir()
    with pytest.raises(InputError, match="is a directory"):
        traceview.read(tmp_path / "folder.nsys-rep", nsys=str(working))


INSTALLED = (
    "nvidia/nsight-systems/2025.3.2/bin/nsys",
    "nvidia/nsight-systems/2025.3.2/target-linux-x64/nsys",
    "nvidia/nsight-compute/2025.2.0/host/target-linux-x64/nsys",
)


@pytest.mark.parametrize("place", INSTALLED)
def test_the_usual_places_are_searched(tmp_path: Path, place: str) -> None:
    program = script(tmp_path / "opt" / place, "exit 0")
    assert find_nsys(root=tmp_path / "opt") == program


def test_the_newest_installation_of_nsight_systems_wins(tmp_path: Path) -> None:
    for place in (
        "nvidia/nsight-systems/2024.6.2/bin/nsys",
        "nvidia/nsight-systems/2025.3.2/bin/nsys",
        "nvidia/nsight-systems/2025.10.1/bin/nsys",
        "nvidia/nsight-compute/2025.2.0/host/target-linux-x64/nsys",
    ):
        script(tmp_path / "opt" / place, "exit 0")
    assert "nsight-systems/2025.10.1" in str(find_nsys(root=tmp_path / "opt"))


def test_a_file_that_cannot_be_run_is_no_program(tmp_path: Path) -> None:
    script(tmp_path / "opt" / INSTALLED[0], "exit 0").chmod(0o644)
    with pytest.raises(NsysError, match="was not found"):
        find_nsys(root=tmp_path / "opt")


def test_a_report_in_the_working_folder_is_named_by_its_whole_path(
    report: Path, working: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(report.parent)
    traceview.read(Path(report.name), nsys=str(working))
    assert (tmp_path / "called").read_text().split()[-1] == str(report)
