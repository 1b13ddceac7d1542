"""A file that stands for storage (the tier behind host memory): its pages are read into the host pool before a load."""

from __future__ import annotations

import mmap
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from instrument.errors import InstrumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from instrument.workload.options import Storage
    from instrument.workload.plan import Shape
    from instrument.workload.range_set import RangeSet

_LAYER_BY_LAYER = ("contiguous", "layer-first")
"""Layouts in which a layer is one part of the file; in the others every page holds a part of every layer."""


@dataclass(frozen=True)
class StorageReader:
    """Reads the file into the pool, part by part (one part per layer); ``staging`` is None when it reads straight in.

    ``read_ns`` and ``stage_ns`` collect the host time of every part.
    """

    descriptor: int
    storage: Storage
    shape: Shape
    pool: NDArray[np.uint8]
    staging: NDArray[np.uint8] | None
    ranges: RangeSet
    read_ns: list[int]
    stage_ns: list[int]

    def before_load(self, layer: int) -> None:
        """Bring what the load of ``layer`` needs into the pool: its own part, or all parts before the first layer."""
        if self.shape.layout in _LAYER_BY_LAYER:
            self._bring(layer)
        elif layer == 0:
            for part in range(self.shape.layers):
                self._bring(part)

    def forget_cache(self) -> None:
        """Ask the kernel to drop the file from its page cache, so that a buffered read really reads."""
        if self.storage.io == "buffered":
            os.posix_fadvise(self.descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def take_times(self) -> dict[str, int]:
        """Return the host time spent on reading and staging since the last call, in ns."""
        times = {"storage_read_ns": sum(self.read_ns), "stage_ns": sum(self.stage_ns)}
        self.read_ns.clear()
        self.stage_ns.clear()
        return times

    def _bring(self, part: int) -> None:
        size = self.shape.layer_bytes
        place = self.pool[part * size : (part + 1) * size]
        begin = time.perf_counter_ns()
        with self.ranges.storage_read(size):
            read_all(self.descriptor, place if self.staging is None else self.staging, part * size)
        read = time.perf_counter_ns()
        self.read_ns.append(read - begin)
        if self.staging is not None:
            with self.ranges.stage(size):
                place[:] = self.staging
            self.stage_ns.append(time.perf_counter_ns() - read)


@contextmanager
def storage_reader(
    storage: Storage, shape: Shape, pool: NDArray[np.uint8], ranges: RangeSet
) -> Iterator[StorageReader]:
    """Open the file, which is first written from the pool where there is none; else it must have the pool's size.

    Raises `InstrumentError` where it has another, or cannot be written or opened.
    """
    path = Path(storage.path)
    if not path.exists():
        _write(path, pool)
    if path.stat().st_size != len(pool):
        raise InstrumentError(
            f"{path.name} has {path.stat().st_size} bytes, the pool {len(pool)}: name a file of that size or a new one"
        )
    with ExitStack() as stack:
        descriptor = _open(path, storage.io)
        stack.callback(os.close, descriptor)
        staging = None
        if storage.staged:
            # page-aligned, as O_DIRECT asks
            staging = np.frombuffer(mmap.mmap(-1, shape.layer_bytes), dtype=np.uint8)
        yield StorageReader(descriptor, storage, shape, pool, staging, ranges, [], [])


def read_all(descriptor: int, place: NDArray[np.uint8], offset: int) -> None:
    """Fill ``place`` from the file at ``offset``; raise `InstrumentError` when it ends early or cannot be read so."""
    view, done = place.data, 0
    while done < len(view):
        try:
            count = os.preadv(descriptor, [view[done:]], offset + done)
        except OSError as error:
            raise InstrumentError(f"storage cannot be read: {error.strerror}; try --storage-io buffered") from None
        if count == 0:
            raise InstrumentError(f"storage ends after {offset + done} bytes: delete the file to have it written anew")
        done += count


def _open(path: Path, io: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | (os.O_DIRECT if io == "direct" else 0))
    except OSError as error:
        raise InstrumentError(f"{path.name} cannot be opened for {io} reading: {error.strerror}") from None


def _write(path: Path, pool: NDArray[np.uint8]) -> None:
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with unfinished.open("wb") as file:
            file.write(pool.data)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InstrumentError(f"{path.name} cannot be written: {error.strerror}") from None
