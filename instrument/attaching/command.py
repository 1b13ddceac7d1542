"""``python -m instrument attach``: gives functions of a program ranges without touching its code."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from instrument.attaching.presets import PRESETS
from instrument.attaching.python_launch import Launch, read_launch
from instrument.attaching.site.sitecustomize import VARIABLE
from instrument.attaching.wrap_spec import Wrap, parse_wrap
from instrument.errors import InstrumentError, WrongUsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

SITE = Path(__file__).resolve().parent / "site"
"""The folder for ``PYTHONPATH``: its sitecustomize puts the wrapping in place."""

_CHECK = f"import runpy; runpy.run_path({str(SITE / 'sitecustomize.py')!r})['load']('attaching.check').main()"

_DEAF = {"I": "-I", "E": "-E", "S": "-S"}
"""Options with which Python reads no PYTHONPATH or no sitecustomize, so that nothing can be wrapped."""


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--wrap",
    "specs",
    multiple=True,
    metavar="MODULE:NAME=TEXT",
    help="Give this function a range: package.module:Class.method=load layer {layer_id}. Repeatable.",
)
@click.option(
    "--preset", "presets", multiple=True, type=click.Choice(sorted(PRESETS)), help="Wraps for a known engine."
)
@click.option("--no-check", is_flag=True, help="Start the program without looking the functions up first.")
@click.option("--dry-run", is_flag=True, help="Look the functions up, print the wraps, start nothing.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def attach(
    specs: tuple[str, ...], presets: tuple[str, ...], no_check: bool, dry_run: bool, command: tuple[str, ...]
) -> None:
    """Run COMMAND with ranges around functions of its code, in it and in the Python processes that it starts.

    TEXT is the name of the range; {argument}, {self.pool.id}, {sizes[0]} are filled from each call, and
    {argument:number} is the first number in the argument's text. Coroutines and generators have the range from their
    first step to their end. Without a profiler nothing is wrapped, so put this behind nsys:

    \b
        nsys profile --trace=cuda,nvtx \\
          python -m instrument attach --preset sglang-hicache -- python serve.py

    An unknown function ends this with exit code 2 before the program starts. Otherwise the program takes the place of
    this process, and its exit code is the program's. A function that only the import can show to be missing is told on
    stderr then. Python processes started with -I, -E or -S, or without this environment, run without ranges.
    """
    wraps = _wraps(specs, presets)
    if not command:
        raise WrongUsageError("there is nothing to run: end with -- python your_program.py")
    command = _runnable(command)
    launch = read_launch(command)
    if not no_check:
        check(wraps, launch)
    if dry_run:
        click.echo("\n".join(str(wrap) for wrap in wraps))
        return
    _replace_process(command, wraps)


def _wraps(specs: Sequence[str], presets: Sequence[str]) -> list[Wrap]:
    try:
        wraps = [parse_wrap(spec) for spec in specs]
    except ValueError as error:
        raise WrongUsageError(f"--wrap: {error}") from None
    for name in presets:
        wraps.extend(PRESETS[name].wraps())
    if not wraps:
        raise WrongUsageError(f"nothing to wrap: add --wrap MODULE:NAME=TEXT or --preset {'|'.join(sorted(PRESETS))}")
    return wraps


def _runnable(command: tuple[str, ...]) -> tuple[str, ...]:
    """Put this Python before a bare ``program.py`` that cannot be executed by itself."""
    if command[0].endswith(".py") and not os.access(command[0], os.X_OK):
        return (sys.executable, *command)
    if shutil.which(command[0]) is None:
        raise WrongUsageError(f"cannot start {command[0]}: no such program on PATH")
    return command


def check(wraps: Sequence[Wrap], launch: Launch) -> None:
    """Raise WrongUsageError when a wrap cannot work in the program's Python; tell what only an import shows."""
    deaf = [option for letter, option in _DEAF.items() if letter in launch.flags]
    if deaf:
        raise WrongUsageError(f"python {deaf[0]} ignores what attach sets, so nothing would be named: leave it out")
    for wrap in wraps:
        if wrap.module in ("__main__", launch.module):
            raise WrongUsageError(
                f"{wrap.module} is the program itself, which is not imported: wrap what it imports, "
                "or use instrument.ranges in it"
            )
    answer = _ask_python(wraps, launch)
    if answer["missing"]:
        missing = " ".join(answer["missing"])
        raise WrongUsageError(f"{launch.python} lacks {missing}: {launch.python} -m pip install {missing}")
    for note in answer["notes"]:
        click.echo(f"note: {note}", err=True)
    if answer["errors"]:
        raise WrongUsageError("; ".join(answer["errors"]) + _looked_with(wraps, launch))


def _looked_with(wraps: Sequence[Wrap], launch: Launch) -> str:
    fits = [
        f"preset {name} fits {preset.package} {preset.release}"
        for name, preset in PRESETS.items()
        if set(preset.wraps()) & set(wraps)
    ]
    looked = f"looked with {launch.python}" + (
        "" if launch.sure else ", add --no-check if the program has another Python"
    )
    return f" ({'; '.join([*fits, looked])})"


def _ask_python(wraps: Sequence[Wrap], launch: Launch) -> dict[str, list[str]]:
    request = {"first_path": launch.first_path(), "wraps": [str(wrap) for wrap in wraps]}
    try:
        done = subprocess.run(
            [launch.python, "-c", _CHECK], input=json.dumps(request), capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise WrongUsageError(f"cannot start {launch.python}: {error.strerror}") from None
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        raise WrongUsageError(f"{launch.python} could not look the functions up ({reason[0]}): add --no-check to go on")
    answer: dict[str, list[str]] = json.loads(done.stdout)
    return answer


def child_environment(wraps: Sequence[Wrap]) -> dict[str, str]:
    """Return this process's environment with what makes each Python below it wrap these functions."""
    inherited = os.environ.get("PYTHONPATH")
    paths = [str(SITE), *([inherited] if inherited else [])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), VARIABLE: "\n".join(map(str, wraps))}


def _replace_process(command: Sequence[str], wraps: Sequence[Wrap]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvpe(command[0], list(command), child_environment(wraps))
    except OSError as error:
        raise InstrumentError(f"cannot start {command[0]}: {error.strerror}") from None
