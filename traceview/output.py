"""Writes results whole or not at all, and never over the trace."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

import click

from traceview.errors import OutputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

_LONGEST_NAME = 200
"""Bytes of a file name that leave room for the temporary one beside it."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What the system says of a full disk, a used-up quota, a limit of size, a broken device."""


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
    """Raise before the work is done where writing ``path`` would hit an input or, without ``force``, any file.

    ``UsageError`` for an input, ``OutputError`` for a file that is there and for a place where none can be.
    """
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
    """Write every file as :func:`write_whole` does, and rename none before all are written.

    Raises ``OutputError`` where one cannot be written.
    """
    staged = {path: _beside(path.resolve()) for path in files}
    try:
        for path, content in files.items():
            with _told(path), staged[path].open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, beside in staged.items():
            with _told(path):
                beside.replace(path.resolve())
    finally:
        for beside in staged.values():
            with suppress(OSError):
                beside.unlink()


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write a folder's files: all of a new folder or nothing; into one that is there as :func:`write_all` does.

    Raises ``OutputError`` where they cannot be written.
    """
    if folder.is_dir():
        write_all({folder / name: content for name, content in files.items()})
        return
    beside = _beside(folder.resolve())
    try:
        with _told(folder):
            beside.mkdir()
            for name, content in files.items():
                with whole_file(beside / name) as file:
                    file.write(content)
            beside.rename(folder.resolve())
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def print_page(page: str) -> None:
    """Print an HTML page in the encoding that it names, UTF-8, whatever that of standard output is."""
    say(page.encode("utf-8"))


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Give a file to write under a temporary name beside ``path``; rename it at the end, or leave nothing behind.

    Raises ``OSError`` where it cannot be written.
    """
    path = path.resolve()
    beside = _beside(path)
    try:
        with beside.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        with suppress(OSError):
            beside.unlink()


def _beside(path: Path) -> Path:
    """Return a name that nobody else has; known before the file is there, it can be removed whenever it ends."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}")


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Turn what the system says into ``OutputError``."""
    try:
        yield
    except OSError as error:
        hint = "is the disk full?" if error.errno in _FULL else "choose another folder"
        raise OutputError(f"{path} cannot be written: {error.strerror}", hint) from None
