"""What is shipped: both archives built, the wheel installed into a bare environment, the commands run there.

Needs a package index, so it runs only when asked for: ``python -m pytest -m release``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest

import traceview

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_traces" / "item.sqlite"
NOT_SHIPPED = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "sample_traces", "tests")

PACKAGES = ("traceview", "instrument")
DATA = {"instrument/py.typed", "traceview/py.typed"} | {
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "traceview" / "render").rglob("*")
    if path.is_file() and path.suffix not in (".py", ".pyc")
}
"""What the packages need beside their modules."""

HEAVY = {"matplotlib", "pandas", "torch", "pyarrow", "perfetto", "distributed", "dask", "scipy", "PIL"}
RUN_AND_TELL_IMPORTS = """
import sys
from traceview.cli import run
try:
    run(sys.argv[1:])
except SystemExit as ended:
    status = ended.code
print(*sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
sys.exit(status)
"""


class Built(NamedTuple):
    """The files of a release, and the wheel that comes of the sources without the detour over the source archive."""

    source: Path
    wheel: Path
    direct: Path


def succeed(*command: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command away from the sources, so that only what is installed can be imported."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=kept | variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("release")
    shutil.copytree(ROOT, folder / "sources", ignore=NOT_SHIPPED)
    succeed(sys.executable, "-m", "build", "-o", folder / "dist", folder / "sources", cwd=folder)
    succeed(sys.executable, "-m", "build", "--wheel", "-o", folder / "direct", folder / "sources", cwd=folder)
    (source,), (wheel,) = folder.glob("dist/*.tar.gz"), folder.glob("dist/*.whl")
    return Built(source, wheel, next(folder.glob("direct/*.whl")))


@pytest.fixture(scope="module")
def bare(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the programs of an environment that holds the wheel and what it depends on, and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    succeed(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    succeed(programs / "python", "-m", "pip", "install", "-q", built.wheel, cwd=folder)
    return programs


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def imported(bare: Path, folder: Path, *arguments: object) -> set[str]:
    """Return the top-level modules that a command of the installed package has imported."""
    done = succeed(bare / "python", "-c", RUN_AND_TELL_IMPORTS, *arguments, cwd=folder)
    return set(done.stderr.splitlines()[-1].split())


def test_the_wheel_holds_every_module_and_all_data_and_no_more(built: Built) -> None:
    names = {name for name in contents(built.wheel) if not name.startswith(f"traceview-{traceview.__version__}.")}
    modules = {path.relative_to(ROOT).as_posix() for folder in PACKAGES for path in (ROOT / folder).rglob("*.py")}
    assert names == modules | DATA
    assert {"traceview/render/report.schema.json", "traceview/render/assets/echarts/echarts.min.js"} <= DATA


def test_the_source_archive_makes_the_same_wheel(built: Built) -> None:
    assert contents(built.wheel) == contents(built.direct)


def test_the_source_archive_holds_the_documents_and_no_tests(built: Built) -> None:
    with tarfile.open(built.source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "MEASURES.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "THIRD_PARTY.md"} <= names
    assert not [name for name in names if name.startswith(("tests", "sample_traces"))]


def test_it_says_that_it_is_typed_and_under_which_licences(built: Built) -> None:
    files = contents(built.wheel)
    info = f"traceview-{traceview.__version__}.dist-info"
    metadata = files[f"{info}/METADATA"].decode()
    assert "Classifier: Typing :: Typed\n" in metadata
    assert "License-Expression: Apache-2.0 AND BSD-3-Clause\n" in metadata
    licences = {name.removeprefix(f"{info}/licenses/") for name in files if name.startswith(f"{info}/licenses/")}
    bundled = {f"traceview/render/assets/echarts/{name}" for name in ("LICENSE", "LICENSE-d3", "NOTICE")}
    assert licences == {"LICENSE", "THIRD_PARTY.md", *bundled}


def test_the_environment_is_bare_and_whole(bare: Path, tmp_path: Path) -> None:
    succeed(bare / "python", "-m", "pip", "check", cwd=tmp_path)
    listed = succeed(bare / "python", "-m", "pip", "list", "--format=json", cwd=tmp_path).stdout
    names = {one["name"] for one in json.loads(listed)}
    assert "traceview" in names
    assert not names & {"torch", "pandas", "pyarrow", "perfetto", "distributed", "pytest"}


@pytest.mark.parametrize("program", [["traceview"], ["python", "-m", "traceview"]])
def test_the_program_runs_under_both_names(program: list[str], bare: Path, tmp_path: Path) -> None:
    command = [bare / program[0], *program[1:]]
    assert succeed(*command, "--version", cwd=tmp_path).stdout == f"traceview, version {traceview.__version__}\n"
    assert "A forward takes" in succeed(*command, "report", SAMPLE, cwd=tmp_path).stdout


def test_the_workload_is_planned_without_torch(bare: Path, tmp_path: Path) -> None:
    done = succeed(bare / "python", "-m", "instrument", "run", "--dry-run", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)


def test_help_and_version_import_nothing_that_takes_long(bare: Path, tmp_path: Path) -> None:
    for option in ("--help", "--version"):
        assert not imported(bare, tmp_path, option) & {*HEAVY, "numpy", "rich", "sqlite_utils"}


@pytest.mark.parametrize("style", ["text", "json", "markdown", "html"])
def test_a_report_imports_nothing_that_draws_or_computes_more(style: str, bare: Path, tmp_path: Path) -> None:
    found = imported(bare, tmp_path, "report", SAMPLE, "--format", style, "-o", tmp_path / "report")
    assert "numpy" in found
    assert not found & HEAVY
    assert (tmp_path / "report").stat().st_size


def test_a_picture_imports_matplotlib_and_no_more(bare: Path, tmp_path: Path) -> None:
    found = imported(bare, tmp_path, "timeline", SAMPLE, "-o", tmp_path / "one.png")
    assert "matplotlib" in found
    assert not found & {"pandas", "torch", "pyarrow", "scipy"}


def test_what_needs_an_extra_says_which(bare: Path, tmp_path: Path) -> None:
    for target in ("perfetto", "parquet"):
        command = [bare / "traceview", "export", SAMPLE, tmp_path / target, "--to", target]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode
        assert f"pip install 'traceview[{target}]'" in done.stderr


def test_types_reach_whoever_imports_it(bare: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(
        "import traceview\nfrom instrument.ranges import load\nfrom traceview.analysis.report import build_report\n\n"
        'reveal_type(build_report(traceview.read("run.sqlite")).forwards)\nwith load(3, 1 << 20):\n    pass\n'
    )
    options = ("--strict", "--python-executable", bare / "python", "--config-file", os.devnull)
    told = succeed(sys.executable, "-m", "mypy", *options, user, cwd=tmp_path).stdout
    assert 'Revealed type is "tuple[traceview.report.Forward, ...]"' in told
