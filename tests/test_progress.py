"""Progress is for people who watch a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from traceview.progress import steps

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "item.sqlite"
COMMAND = [sys.executable, "-m", "traceview", "report", str(SAMPLE), "--format", "json"]


def test_a_pipe_sees_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with steps(2) as step:
        step("one")
        step("two")
    assert capfd.readouterr() == ("", "")


def test_a_command_whose_errors_go_to_a_pipe_writes_its_result_only() -> None:
    done = subprocess.run(COMMAND, capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.startswith(b"{")


def test_a_terminal_sees_the_step_and_then_nothing_of_it() -> None:
    above, below = pty.openpty()
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=below, env={**os.environ, "TERM": "xterm"}) as done:
        result = done.stdout.read() if done.stdout else b""
    os.close(below)
    shown = b""
    try:
        while chunk := os.read(above, 4096):
            shown += chunk
    except OSError:  # the other end of a terminal is gone: that is how its end of file looks
        pass
    os.close(above)
    assert result.startswith(b"{")
    assert b"reading" in shown
    assert shown.rstrip().endswith((b"\x1b[2K", b"\x1b[?25h"))
