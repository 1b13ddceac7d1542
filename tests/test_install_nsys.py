"""CI's own way to an nsys: it keeps what is there, and says in one line why it gets none."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "install_nsys.sh"
PROGRAM = Path("usr/lib/x86_64-linux-gnu/nsight-systems/target-linux-x64/nsys")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder of programs without any that could install something."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("bash", "realpath"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    return folder


def install(folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [path / "bash", SCRIPT, folder], env={"PATH": str(path)}, capture_output=True, text=True, check=False
    )


def test_an_nsys_that_is_there_is_kept(bare: Path, tmp_path: Path) -> None:
    nsys = tmp_path / "nsys" / PROGRAM
    nsys.parent.mkdir(parents=True)
    nsys.write_text(f"#!{bare}/bash\n[ $1 = --version ]\n")
    nsys.chmod(0o755)
    done = install(tmp_path / "nsys", bare)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nsys}\n", "")


def test_one_line_says_why_there_is_none(bare: Path, tmp_path: Path) -> None:
    done = install(tmp_path / "nsys", bare)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "nsys was not installed: there is no apt-get\n"
    assert not (tmp_path / "nsys").exists()
