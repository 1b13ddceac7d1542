"""What the shell offers on Tab: commands, options, files, and values that have names."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import click
import pytest
from click.shell_completion import ShellComplete

from traceview.analysis.whatif import EDITS
from traceview.cli import COMMANDS, main

if TYPE_CHECKING:
    from pathlib import Path


def offered(*words: str) -> list[tuple[str, str]]:
    """Return what is offered for the last word, as kind and value."""
    completion = ShellComplete(main, {}, "traceview", "_TRACEVIEW_COMPLETE")
    return [(item.type, item.value) for item in completion.get_completions(list(words[:-1]), words[-1])]


def values(*words: str) -> list[str]:
    return [value for _, value in offered(*words)]


def test_commands_are_offered_without_importing_any() -> None:
    assert values("") == list(COMMANDS)
    assert values("re") == ["report"]
    code = (
        "import sys; from traceview.cli import run\ntry: run()\nexcept SystemExit: pass\n"
        "print([name for name in sys.modules if name.startswith('traceview.commands.') or name == 'numpy'])"
    )
    asked = {"_TRACEVIEW_COMPLETE": "bash_complete", "COMP_WORDS": "traceview ", "COMP_CWORD": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=asked, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[: len(COMMANDS)] == [f"plain,{name}" for name in COMMANDS]
    assert done.stdout.splitlines()[len(COMMANDS) :] == ["[]"]


def test_options_and_their_choices_are_offered() -> None:
    assert "--what-if" in values("report", "run.sqlite", "--w")
    assert values("report", "run.sqlite", "--format", "") == ["text", "json", "markdown", "html"]
    assert "overlap" in values("plot", "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_file_is_completed_as_one(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    files = [one for one in command.params if one.metavar and {"FILE", "DIR", "TRACE", "IN"} & set(one.metavar.split())]
    for parameter in [*files, *(one for one in command.params if isinstance(one, click.Argument) and one.metavar)]:
        found = parameter.type.shell_complete(click.Context(command), parameter, "run")
        assert [item.type for item in found] in (["file"], ["dir"]), parameter.name


def test_edits_are_offered_until_all_are_in_the_list() -> None:
    assert values("report", "run.sqlite", "--what-if", "") == list(EDITS)
    assert values("report", "run.sqlite", "--what-if", "pin,no") == ["pin,no-sync"]
    assert values("report", "run.sqlite", "--what-if", "pin,p") == []


def test_thresholds_and_measures_are_offered_by_name() -> None:
    assert values("report", "run.sqlite", "--threshold", "high") == ["high_share="]
    assert values("diff", "--threshold", "makespan") == ["makespan_ns=min:"]
    assert "layer_stall_ns" in values("history", "runs.db", "--measure", "layer_")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    if shell == "bash" and shutil.which("bash") is None:
        pytest.skip("click asks bash for its version")
    asked = {"_TRACEVIEW_COMPLETE": f"{shell}_source", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-m", "traceview"], env=asked, capture_output=True, text=True, check=True)
    assert f"_TRACEVIEW_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_with_that_script(tmp_path: Path) -> None:
    program = tmp_path / "traceview"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m traceview "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(_TRACEVIEW_COMPLETE=bash_source traceview)"\n'
        "COMP_WORDS=(traceview report run.sqlite --what-if pin,own) COMP_CWORD=4\n"
        '_traceview_completion traceview; echo "${COMPREPLY[@]}"\n'
    )
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], env=path, capture_output=True, text=True, check=True)
    assert done.stdout == "pin,own-stream\n"
