"""Keeps traces as they were read, so that the same file need not be read, or exported by nsys, again.

A cache is a folder that the user names. A file in it holds one trace: its arrays as they are in memory, in numpy's own
container, and the rest as JSON. Its name is made of the content of the capture and of the source of the reader, so that
neither another file nor another reader can ever be answered by it. It is written under another name first and renamed,
so processes may race and may be killed; what cannot be written is not kept, what cannot be read is read anew.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

import numpy as np

from traceview import model
from traceview.errors import InputError, OutputError
from traceview.nsys.database import identify
from traceview.output import whole_file
from traceview.trace_check import is_sound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traceview.model import Trace

SUFFIX = ".traceview"
_READER = ("model.py", "nsys")
_BLOCK_BYTES = 1 << 20
_REST = "rest"


def through_cache(folder: Path, path: Path, variant: str, make: Callable[[], Trace]) -> tuple[Trace, str | None]:
    """Return a trace from the cache, else make it and keep it; and one line where it could not be kept.

    ``variant`` tells apart what the same file can be read as. Raises ``OutputError`` where ``folder`` is no folder.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is no folder", "name a folder with --cache")
    before = identify(path)
    entry = folder / f"{_key(path, variant)}{SUFFIX}"
    found = _load(entry)
    if found is not None:
        return replace(found, capture=replace(found.capture, path=path)), None
    trace = make()
    if identify(path) != before:
        return trace, f"{path} was replaced or written while it was read: the trace was not kept"
    try:
        _store(entry, trace)
    except OSError as error:
        return trace, f"the trace could not be kept in {folder}: {error.strerror or error}"
    return trace, None


def _key(path: Path, variant: str) -> str:
    """Return what names a trace: the content of its file, how it is read, and by which reader."""
    digest = hashlib.blake2b(f"{reader_version()} {variant}".encode(), digest_size=20)
    try:
        with path.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                digest.update(block)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", "check the path") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", "check its permissions") from None
    return digest.hexdigest()


@cache
def reader_version() -> str:
    """Return what changes with any change of the reader: a digest of its source."""
    digest = hashlib.blake2b(digest_size=8)
    package = resources.files("traceview")
    for name in _READER:
        place = package.joinpath(name)
        files = [place] if place.is_file() else sorted(place.iterdir(), key=lambda one: one.name)
        for file in files:
            if file.name.endswith(".py"):
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _store(entry: Path, trace: Trace) -> None:
    """Write a trace whole or not at all."""
    arrays: dict[str, Any] = {}
    rest = json.dumps(_plain(trace, "trace", arrays)).encode()
    arrays[_REST] = np.frombuffer(rest, dtype=np.uint8)
    entry.parent.mkdir(parents=True, exist_ok=True)
    # as np.savez, which before numpy 2 leaves the archive open on a full disk, to complain at the end of the program
    with whole_file(entry) as file, ZipFile(file, "w") as stored:
        for name, array in arrays.items():
            with stored.open(f"{name}.npy", "w", force_zip64=True) as place:
                np.lib.format.write_array(place, array, allow_pickle=False)


def _load(entry: Path) -> Trace | None:
    """Return the trace that a file of the cache holds, or None where there is none or it is damaged."""
    try:
        with entry.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            trace: Trace = _restored(json.loads(stored[_REST].tobytes()), stored)
            return trace if is_sound(trace) else None
    except Exception:
        # whatever a damaged container makes zipfile, numpy or json raise: the capture itself is still there to be read
        return None


def _plain(value: Any, name: str, arrays: dict[str, np.ndarray]) -> Any:
    """Return a value as JSON can hold it; arrays go beside it under the name that says where they belong."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "name": value.name}
    if is_dataclass(value):
        parts = {one.name: _plain(getattr(value, one.name), f"{name}.{one.name}", arrays) for one in fields(value)}
        return {"class": type(value).__name__, "fields": parts}
    if isinstance(value, Path):
        return {"path": str(value)}
    if isinstance(value, tuple):
        return {"tuple": [_plain(one, f"{name}.{place}", arrays) for place, one in enumerate(value)]}
    if hasattr(value, "items"):
        return {"pairs": [[key, _plain(one, f"{name}.{key}", arrays)] for key, one in value.items()]}
    if isinstance(value, list):
        return {"list": [_plain(one, f"{name}.{place}", arrays) for place, one in enumerate(value)]}
    return value


def _restored(value: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    """Return what :func:`_plain` was given."""
    if not isinstance(value, dict):
        return value
    kind, content = next(iter(value.items()))
    makers: dict[str, Callable[[], Any]] = {
        "array": lambda: arrays[content],
        "enum": lambda: getattr(model, content)[value["name"]],
        "class": lambda: getattr(model, content)(
            **{name: _restored(one, arrays) for name, one in value["fields"].items()}
        ),
        "path": lambda: Path(content),
        "tuple": lambda: tuple(_restored(one, arrays) for one in content),
        "pairs": lambda: {key: _restored(one, arrays) for key, one in content},
        "list": lambda: [_restored(one, arrays) for one in content],
    }
    return makers[kind]()
