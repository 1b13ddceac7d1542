"""Where a broken rule is shown: the source line of a call stack where that file is here, else the trace."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_FRAME = re.compile(r"\((?P<file>[^()]+):(?P<line>\d+)\)$|(?P<plain>[\w./-]+\.\w{1,4}):(?P<number>\d+)$")


@dataclass(frozen=True)
class Location:
    """A file, as a path from the root where it lies below it, and a line or None."""

    path: str
    line: int | None


def locate(trace: str, frames: Sequence[str], root: Path) -> Location:
    """Return the innermost frame whose source lies below ``root`` (the repository), else the trace itself.

    Frames name files as the captured machine had them: ``decode (/app/engine/sched.py:214)`` is found as
    ``engine/sched.py`` here.
    """
    for frame in frames:
        found = _FRAME.search(frame)
        if not found:
            continue
        file, number = found["file"] or found["plain"], found["line"] or found["number"]
        here = _below(PurePosixPath(file), root)
        if here is not None:
            return Location(here, int(number))
    return Location(_relative(trace, root), None)


def _below(file: PurePosixPath, root: Path) -> str | None:
    """Return the longest end of a path that is a file below the root, or None; a bare name must be the whole path."""
    parts = [part for part in file.parts if part != "/"]
    if ".." in parts:
        return None
    ends = range(len(parts) - 1) if len(parts) > 1 else range(1)
    for first in ends:
        candidate = PurePosixPath(*parts[first:])
        if (root / candidate).is_file():
            return candidate.as_posix()
    return None


def _relative(path: str, root: Path) -> str:
    try:
        return Path(path).resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return Path(path).as_posix()
