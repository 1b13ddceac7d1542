"""A command that is killed or interrupted loses nothing and leaves nothing half-written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from killing import COMMANDS, SIGNALS, kill_once

if TYPE_CHECKING:
    from collections.abc import Iterator

SAMPLES = Path(__file__).parents[1] / "sample_traces"


@pytest.fixture(autouse=True)
def _interruptible() -> Iterator[None]:
    """Where the tests run in a shell's background, SIGINT is ignored, and what they start would inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("turn", range(4))
@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_a_random_point(name: str, turn: int, tmp_path: Path) -> None:
    """Twenty in all, others each day; by hand: ``python tests/killing.py --times 200``."""
    seed = f"{time.strftime('%Y-%m-%d')} {name} {turn}"
    rng = random.Random(seed)
    kill_once(name, rng.choice(SIGNALS), rng, tmp_path, again=bool(turn % 2))


INTERRUPTED = """
import os, signal, sys
seen, at, number = 0, int(sys.argv.pop(1)), int(sys.argv.pop(1))
def watch(event, arguments):
    global seen
    if event == "import" and (seen or arguments[0] == "traceview.cli"):
        seen += 1
        if seen == at:
            os.kill(os.getpid(), number)
sys.addaudithook(watch)
import runpy
runpy.run_module("traceview", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 2, 10, 50, 100, 200])
def test_an_interrupt_while_modules_are_imported_says_nothing(number: signal.Signals, at: int) -> None:
    words = [sys.executable, "-c", INTERRUPTED, str(at), str(int(number)), "report", str(SAMPLES / "graph.sqlite")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr.strip()) == ("", "")
    assert done.returncode in {128 + number, -number} - {-signal.SIGINT}


def test_a_fleet_that_is_interrupted_takes_its_workers_with_it(tmp_path: Path) -> None:
    paths = [str(path) for path in sorted(SAMPLES.glob("*.sqlite"))]
    words = [sys.executable, "-m", "traceview", "fleet", *paths, "--jobs", "2"]
    started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(0.8)
    os.killpg(started.pid, signal.SIGINT)
    _, told = started.communicate(timeout=60)
    assert told.strip() == ""
    assert started.returncode == 130
    until = time.monotonic() + 10
    while _is_alive(started.pid) and time.monotonic() < until:
        time.sleep(0.1)
    assert not _is_alive(started.pid)


def _is_alive(group: int) -> bool:
    """Return whether any process of a group is there."""
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


def test_an_ignored_interrupt_stays_ignored() -> None:
    """As ``nohup`` and a shell's ``&`` have it."""
    script = 'trap "" INT; "$0" -m traceview report "$1" --format html & sleep 0.3; kill -INT $!; wait $!'
    words = ["bash", "-c", script, sys.executable, str(SAMPLES / "healthy.sqlite")]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert done.stdout.rstrip().endswith("</html>")
