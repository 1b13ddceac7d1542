"""Writes results whole or not at all, and never over the trace."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceview.errors import OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_LONGEST_NAME = 200
"""Bytes of a file name that leave room for the temporary one beside it."""


def say(text: str | bytes) -> None:
    """Write text to standard output; a reader of the pipe that has gone changes nothing of a command's verdict.

    Raises ``OutputError`` where it cannot be written for another reason.
    """
    try:
        click.echo(text, nl=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # keep the interpreter from writing to the pipe once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        raise OutputError(f"the output could not be written: {error.strerror or error}", "is the disk full?") from None


def check_output(path: Path, *, force: bool, inputs: Iterable[Path], option: str = "-o") -> None:
    """Raise before the work is done where writing ``path`` would hit an input or, without ``force``, any file."""
    if len(os.fsencode(path.name)) > _LONGEST_NAME:
        raise OutputError(f"{path.name[:40]}… is too long for the name of a file", "choose a shorter one")
    if path.is_dir():
        raise OutputError(f"{path} is a directory", "name a file in it")
    if path.exists() and not path.is_file():
        raise OutputError(f"{path} is no regular file", "name one, or leave -o away and redirect: > FILE")
    if any(path.exists() and one.exists() and path.samefile(one) for one in inputs):
        raise UsageError(f"{path} is the input", f"name another file with {option}")
    if path.exists() and not force:
        raise OutputError(f"{path} exists", "name another file, or overwrite it with --force")
    if not path.parent.is_dir():
        raise OutputError(f"{path.parent} is no directory", f"make it first: mkdir -p {path.parent}")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name beside it, then rename it; on failure nothing is left behind.

    Of a link it is the target that is written.
    """
    write_all({path: content})


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write every file as :func:`write_whole` does, and rename none before all are written."""
    staged: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            target = path.resolve()
            staged[target] = _staged(target, content)
        for target, temporary in staged.items():
            temporary.replace(target)
    except OSError as error:
        raise OutputError(f"{target} cannot be written: {error.strerror}", "is the disk full?") from None
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def _staged(path: Path, content: bytes) -> Path:
    """Return a temporary file beside ``path`` with its content and the usual permissions."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}", "choose another folder") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def print_page(page: str) -> None:
    """Print an HTML page in the encoding that it names, UTF-8, whatever that of standard output is."""
    say(page.encode("utf-8"))
