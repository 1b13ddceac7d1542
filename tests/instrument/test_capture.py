"""Finding nsys, telling it what to record, and keeping what it leaves: with a stand-in for nsys."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from instrument.capture import Request, capture, export_command, find_nsys, profile_command, run_line
from instrument.cli import main
from instrument.errors import InstrumentError

LINE = '{"schema":"traceview.run/1","verified":true}'

STAND_IN = """#!/bin/sh
case $1 in
  --version) echo 'NVIDIA Nsight Systems version 2025.3.2.474-253236389321v0'; exit;;
esac
for word; do case $word in --output=*) target=${word#--output=};; esac; done
if [ $1 = profile ]; then
  echo 'Collecting data...'; echo '%(line)s'; echo 'Generated: somewhere'
  %(profile)s
else
  %(export)s
fi
"""


def stand_in(folder: Path, *, line: str = LINE, profile: str = "echo report > $target", export: str = "") -> str:
    """Write a script that behaves like nsys; return its path."""
    path = folder / "nsys"
    export = export or "echo export > $target"
    path.write_text(STAND_IN % {"line": line, "profile": profile, "export": export})
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def installed(root: Path, place: str) -> Path:
    path = root / place
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_capture_leaves_report_export_and_json(tmp_path) -> None:
    request = Request(out=tmp_path / "new" / "out", name="healthy", run=["--layers", "2"])
    files = capture(request, stand_in(tmp_path))
    assert [path.name for path in files] == ["healthy.nsys-rep", "healthy.sqlite", "healthy.json"]
    assert [path.read_text() for path in files[:2]] == ["report\n", "export\n"]
    line = json.loads(files[2].read_text())
    assert line["verified"] is True
    assert line["capture"] == {"nsys": "2025.3.2.474-253236389321v0", "flags": ["--trace=cuda,nvtx"]}
    assert sorted(path.name for path in request.out.iterdir()) == sorted(path.name for path in files)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (
            {"profile": "echo 'error: no CUDA device here' >&2; exit 1"},
            "the run ended with exit code 1: error: no CUDA",
        ),
        ({"profile": "true"}, "no report"),
        ({"line": "no json"}, "no JSON line"),
        ({"export": "echo 'cannot export' >&2; exit 3"}, "the export ended with exit code 3: cannot export"),
    ],
)
def test_a_capture_that_fails_leaves_nothing(tmp_path, broken, words) -> None:
    request = Request(out=tmp_path / "out", name="x", run=[])
    with pytest.raises(InstrumentError, match=words):
        capture(request, stand_in(tmp_path, **broken))
    assert list(request.out.iterdir()) == []


def test_files_of_an_earlier_capture_are_kept_unless_forced(tmp_path) -> None:
    (tmp_path / "x.sqlite").write_text("precious")
    with pytest.raises(InstrumentError, match=r"already has x\.sqlite"):
        capture(Request(out=tmp_path, name="x", run=[]), stand_in(tmp_path))
    assert (tmp_path / "x.sqlite").read_text() == "precious"
    capture(Request(out=tmp_path, name="x", run=[], force=True), stand_in(tmp_path))
    assert (tmp_path / "x.sqlite").read_text() == "export\n"


def test_nsys_is_the_one_given_then_the_variable_then_on_path_then_the_newest_installed(tmp_path) -> None:
    given = stand_in(tmp_path)
    old = installed(tmp_path, "opt/nvidia/nsight-compute/2024.9.1/host/target-linux-x64/nsys")
    new = installed(tmp_path, "opt/nvidia/nsight-compute/2025.10.0/host/target-linux-x64/nsys")
    assert find_nsys(None, {"PATH": ""}, tmp_path) == str(new) != str(old)
    on_path = installed(tmp_path, "bin/nsys")
    assert find_nsys(None, {"PATH": str(tmp_path / "bin")}, tmp_path) == str(on_path)
    assert find_nsys(None, {"PATH": str(tmp_path / "bin"), "NSYS": given}, tmp_path) == given
    assert find_nsys(str(old), {"NSYS": given, "PATH": ""}, tmp_path) == str(old)


def test_nsight_systems_of_its_own_is_found_too(tmp_path) -> None:
    path = installed(tmp_path, "opt/nvidia/nsight-systems/2025.3.2/bin/nsys")
    assert find_nsys(None, {"PATH": ""}, tmp_path) == str(path)


def test_a_missing_nsys_is_said_with_what_to_do(tmp_path) -> None:
    with pytest.raises(InstrumentError, match="--nsys PATH"):
        find_nsys(None, {"PATH": ""}, tmp_path)
    with pytest.raises(InstrumentError, match=r"\$NSYS names /none"):
        find_nsys(None, {"PATH": "", "NSYS": "/none"}, tmp_path)


def test_each_wish_adds_its_flags() -> None:
    def words(**wishes: object) -> list[str]:
        return profile_command(Request(out=Path(), name="x", run=["--layers", "2"], **wishes), "nsys", Path("r"))

    plain = words()
    assert plain[-5:] == ["-m", "instrument", "run", "--layers", "2"]
    assert {"--trace=cuda,nvtx", "--sample=none", "--cpuctxsw=none"} <= set(plain)
    assert "--cuda-graph-trace=node" in words(graph_nodes=True)
    assert {"--gpu-metrics-devices=0", "--gpu-metrics-frequency=20000"} <= set(words(metrics="0", metrics_hz=20000))
    stacks = words(cuda_stacks=True, python_stacks=True)
    assert {"--cudabacktrace=all", "--python-backtrace=cuda"} <= set(stacks)
    assert "--sample=none" not in stacks


def test_python_frames_are_exported_with_python_stacks_only() -> None:
    asked = Request(out=Path(), name="x", run=[], python_stacks=True)
    assert "--include-json=true" in export_command(asked, "nsys", Path("r"), Path("s"))
    plain = Request(out=Path(), name="x", run=[])
    assert "--include-json=true" not in export_command(plain, "nsys", Path("r"), Path("s"))


def test_the_run_line_is_found_among_other_output() -> None:
    assert run_line(f'{{"schema":"other"}}\n{LINE}\n{{broken\nGenerating') == json.loads(LINE)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--", "--mover", "hand"], 2, "see python -m instrument run --help"),
        (["--", "--sm-blocks", "4"], 2, "--mover sm"),
        (["--", "--dry-run"], 2, "leave out --dry-run"),
        (["--gpu-metrics-hz", "100"], 2, "--gpu-metrics all"),
        (["--name", "a/b"], 2, "--out"),
        (["--name", ".."], 2, "--out"),
        (["--nsys", "/none"], 1, "--nsys names /none"),
    ],
)
def test_wrong_usage_is_said_before_anything_runs(capsys, tmp_path, arguments, code, words) -> None:
    with pytest.raises(SystemExit) as end:
        main(["capture", "--out", str(tmp_path / "out"), *arguments])
    assert end.value.code == code
    assert words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_said_in_one_line(capsys, tmp_path) -> None:
    with pytest.raises(SystemExit) as end:
        main(["capture", "--out", "/proc/none", "--nsys", stand_in(tmp_path)])
    assert end.value.code == 1
    message = "error: /proc/none cannot be written: No such file or directory; use --out FOLDER\n"
    assert capsys.readouterr().err == message


def test_the_command_prints_the_paths(capsys, tmp_path) -> None:
    arguments = ["capture", "--out", str(tmp_path / "out"), "--nsys", stand_in(tmp_path), "--", "--layers", "2"]
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    assert [Path(text).name for text in capsys.readouterr().out.split()] == [
        "capture.nsys-rep",
        "capture.sqlite",
        "capture.json",
    ]
