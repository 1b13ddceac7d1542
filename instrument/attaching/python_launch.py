"""Finds out which Python a command line starts, with which options and which program."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_PYTHON = re.compile(r"python[\d.]*t?")


@dataclass(frozen=True)
class Launch:
    """A Python and what it is to run: a ``script`` file, a ``module`` (``-m``), or neither (``-c``, stdin, unknown).

    ``flags`` holds the single-letter options of the interpreter; ``sure`` is False when the command line shows no
    Python, and ``python`` is then the one that runs this.
    """

    python: str
    flags: frozenset[str] = field(default_factory=frozenset)
    script: str | None = None
    module: str | None = None
    sure: bool = True

    def first_path(self) -> str | None:
        """Return the folder that this Python puts first in ``sys.path``; None when it puts none there."""
        if "P" in self.flags or not self.sure:
            return None
        return str(Path.cwd()) if self.script is None else str(Path(self.script).resolve().parent)


def read_launch(command: Sequence[str]) -> Launch:
    """Return the Python that ``command`` starts: by name, also behind ``nsys profile``, or by its ``#!`` line."""
    for index, word in enumerate(command):
        if _PYTHON.fullmatch(Path(word).name):
            return _read_options(word, command[index + 1 :])
    interpreter = _shebang(command[0])
    if interpreter is not None:
        script = shutil.which(command[0])
        return _read_options(interpreter[0], [*interpreter[1:], str(script)])
    return Launch(sys.executable, sure=False)


def _read_options(python: str, words: Sequence[str]) -> Launch:
    flags: set[str] = set()
    rest = iter(words)
    for word in rest:
        if not word.startswith("-") or word == "-":
            return Launch(python, frozenset(flags), script=None if word == "-" else word)
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, None)
            continue
        letters = re.match(r"-([a-zA-Z]*?)([cmWX]|$)", word)
        flags.update(letters[1] if letters else "")
        last, behind = (letters[2], word[letters.end() :]) if letters else ("", "")
        if last == "m":
            return Launch(python, frozenset(flags), module=behind or next(rest, None))
        if last == "c":
            break
        if last and not behind:
            next(rest, None)
    return Launch(python, frozenset(flags))


def _shebang(program: str) -> list[str] | None:
    """Return the Python and its options that a script's first line names; None for anything else."""
    path = shutil.which(program)
    if path is None:
        return None
    with Path(path).open("rb") as file:
        first = file.readline(512)
    if not first.startswith(b"#!"):
        return None
    words = shlex.split(first[2:].decode(errors="replace"))
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S"]
    return words if words and _PYTHON.fullmatch(Path(words[0]).name) else None
