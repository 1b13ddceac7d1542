"""Which Python a command line starts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from instrument.attaching.python_launch import Launch, read_launch

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("command", "launch"),
    [
        (["python", "serve.py", "-I"], Launch("python", script="serve.py")),
        (["/v/bin/python3.12", "-u", "-m", "pkg", "x.py"], Launch("/v/bin/python3.12", frozenset("u"), module="pkg")),
        (["python3", "-Ou", "-Werror", "-X", "dev", "-mpkg"], Launch("python3", frozenset("Ou"), module="pkg")),
        (["python3", "-W", "error", "a.py"], Launch("python3", script="a.py")),
        (
            ["python3", "--check-hash-based-pycs", "always", "-sE", "a.py"],
            Launch("python3", frozenset("sE"), script="a.py"),
        ),
        (["python", "-c", "print(1)"], Launch("python")),
        (["python", "-"], Launch("python")),
        (["nsys", "profile", "python", "a.py"], Launch("python", script="a.py")),
        (["no-such-program", "a.py"], Launch(sys.executable, sure=False)),
    ],
)
def test_the_python_of_a_command_line(command: list[str], launch: Launch) -> None:
    assert read_launch(command) == launch


def test_the_python_of_a_console_script(tmp_path: Path) -> None:
    script = tmp_path / "serve"
    script.write_text("#!/usr/bin/env -S python3.11 -E\nprint(1)\n")
    script.chmod(0o755)
    assert read_launch([str(script), "--port", "1"]) == Launch("python3.11", frozenset("E"), script=str(script))
