"""Kill commands at random points: ``python tests/killing.py --times 200``.

Each time a command runs in a process of its own, which a signal ends at the n-th call of a function: n lies nearer to
the end more often, since files are written there. Afterwards a file is the old one or the new one, whole; the trace is
as it was; and the next run succeeds.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

import traceview

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Done = subprocess.CompletedProcess[str]

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "graph.sqlite"
_DOOMED = """
import os, sys
number, at, *words = sys.argv[1:]
number, at, count = int(number), int(at), 0
sys.argv[1:] = words
from traceview.__main__ import main
def watch(frame, event, argument):
    global count
    count += 1
    if count == at:
        os.kill(os.getpid(), number)
sys.setprofile(watch)
try:
    main()
finally:
    sys.setprofile(None)
    if at < 0:
        print(count, file=sys.stderr)
"""
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_STATUS = {signal.SIGKILL: {-9, 0}, signal.SIGTERM: {143, -15, 0}, signal.SIGINT: {130, 0}}
"""Exit codes by signal; 0 where the command was done before."""


@dataclass(frozen=True)
class Doomed:
    """A command line in a folder that holds ``trace.sqlite``, what it writes, and who says whether that is whole."""

    words: tuple[str, ...]
    output: str
    is_whole: Callable[[Path], bool]


def _is_text(path: Path) -> bool:
    return path.read_text().rstrip().endswith("}")


def _is_trace(path: Path) -> bool:
    return len(traceview.read(path).operations) > 0


def _is_folder(path: Path) -> bool:
    """Return whether a folder holds all files, each as a run to the end writes it; temporary ones are no part of it."""
    found = {name: content for name, content in _content(path).items() if not name.startswith(".")}
    return found == _content(Path(_made("export").name) / "out")


def _is_history(path: Path) -> bool:
    """Return whether each run that a file of runs holds is complete; what a journal can mend is mended first."""
    with closing(sqlite3.connect(path)) as connection:
        [(state,)] = connection.execute("PRAGMA integrity_check")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            return state == "ok"
        measures = "SELECT (SELECT COUNT(*) FROM measures WHERE run = runs.id) FROM runs"
        return state == "ok" and all(count for (count,) in connection.execute(measures))


def _is_cache(path: Path) -> bool:
    import numpy as np

    for one in path.glob("*.traceview"):
        with np.load(one) as stored:
            assert all(stored[name] is not None for name in stored.files)
    return True


COMMANDS = {
    "report": Doomed(("report", "trace.sqlite", "--format", "json", "-o", "out.json", "--force"), "out.json", _is_text),
    "export": Doomed(("export", "trace.sqlite", "out", "--to", "csv", "--force"), "out", _is_folder),
    "slim": Doomed(("slim", "trace.sqlite", "out.sqlite", "--force"), "out.sqlite", _is_trace),
    "save": Doomed(("save", "trace.sqlite", "--to", "out.db", "--commit", "new"), "out.db", _is_history),
    "cache": Doomed(("report", "trace.sqlite", "--cache", "out"), "out", _is_cache),
}


def kill_once(name: str, number: signal.Signals, rng: random.Random, folder: Path, *, again: bool) -> str:
    """Kill a command once and return what was found: ``nothing``, ``old`` or ``new``; raises ``AssertionError``.

    ``again`` says that the output is already there from a run before.
    """
    doomed, trace, output = COMMANDS[name], folder / "trace.sqlite", folder / COMMANDS[name].output
    shutil.copyfile(SAMPLE, trace)
    calls = _calls(name)
    if again:
        _prepare(name, output)
    before, content = hashlib.sha256(trace.read_bytes()).digest(), _content(output)
    # as likely in the last ten calls as in the ten times more before them
    at = max(calls - int(calls ** rng.random()), 1)
    ended = _run_watched(doomed.words, number, at, folder)
    context = f"{name}, {number.name} at call {at} of {calls}: {ended.stderr}"
    assert ended.returncode in _STATUS[number], f"exit code {ended.returncode}: {context}"
    assert not ended.stderr.strip() or number == signal.SIGKILL, context
    assert hashlib.sha256(trace.read_bytes()).digest() == before, f"the trace was changed: {context}"
    left = {one.name for one in folder.iterdir()} - {trace.name, output.name}
    if number != signal.SIGKILL:
        inside = {name for name in _content(output) if name.startswith(".")}
        assert not left | inside, f"left behind: {left | inside}: {context}"
    assert all(one.startswith((f".{output.name}.", output.name)) for one in left), f"{left}: {context}"
    found = "nothing"
    if output.exists():
        assert doomed.is_whole(output), f"half of it: {context}"
        found = "old" if _content(output) == content else "new"
    _check_next(doomed, output, folder, context)
    return found


def _check_next(doomed: Doomed, output: Path, folder: Path, context: str) -> None:
    """The next run finds nothing in its way."""
    after = _run(doomed.words, folder)
    assert after.returncode == 0, f"the next run fails: {after.stderr}: {context}"
    assert doomed.is_whole(output), context


def _prepare(name: str, output: Path) -> None:
    """Put the output of a run before in place."""
    made = Path(_made(name).name) / COMMANDS[name].output
    if made.is_dir():
        shutil.copytree(made, output)
    else:
        shutil.copyfile(made, output)


@cache
def _made(name: str) -> tempfile.TemporaryDirectory[str]:
    """Return a folder, kept until this process ends, in which a command has run."""
    kept = tempfile.TemporaryDirectory(prefix="killing-", ignore_cleanup_errors=True)
    folder = Path(kept.name)
    shutil.copyfile(SAMPLE, folder / "trace.sqlite")
    words = [word if word != "new" else "old" for word in COMMANDS[name].words]
    assert _run(words, folder).returncode == 0
    return kept


@cache
def _calls(name: str) -> int:
    """Return how many calls of functions a command makes."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copyfile(SAMPLE, Path(folder) / "trace.sqlite")
        done = _run_watched(COMMANDS[name].words, signal.SIGKILL, -1, Path(folder))
        return int(done.stderr.split()[-1])


def _content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return {one.name: one.read_bytes() for one in files}


def _run(words: Sequence[str], folder: Path) -> Done:
    return _finished([sys.executable, "-m", "traceview", *words], folder)


def _run_watched(words: Sequence[str], number: signal.Signals, at: int, folder: Path) -> Done:
    """Run a command that gets a signal at a call; below 0 it gets none and says how many calls there were."""
    return _finished([sys.executable, "-c", _DOOMED, str(int(number)), str(at), *words], folder)


def _finished(line: list[str], folder: Path) -> Done:
    return subprocess.run(line, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


@click.command()
@click.option("--times", type=int, default=200, show_default=True)
@click.option("--seed", type=int, default=1, show_default=True)
def main(times: int, seed: int) -> None:
    """Kill commands at random points and say what was found afterwards."""
    rng, found, wrong = random.Random(seed), Counter[str](), 0
    for turn in range(times):
        name, number = rng.choice(list(COMMANDS)), rng.choice(SIGNALS)
        with tempfile.TemporaryDirectory(prefix="killing-") as folder:
            try:
                found[f"{name} {kill_once(name, number, rng, Path(folder), again=bool(turn % 2))}"] += 1
            except AssertionError as error:
                wrong += 1
                click.echo(str(error))
    click.echo(f"{times} kills, {wrong} wrong: {dict(sorted(found.items()))}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
