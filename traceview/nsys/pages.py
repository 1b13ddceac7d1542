"""Pages of an SQLite file: which of them hold a table's rows, and their bytes.

Source: "Database File Format", sqlite.org/fileformat2.html, sections 1.3 and 1.6.
"""

from __future__ import annotations

import os
import struct
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from io import BufferedReader

    from numpy.typing import NDArray

    from traceview.model import Ints

PAD = 8
"""Bytes behind the last page in a buffer, so that an eight-byte number can be loaded at any offset of it."""

_INTERIOR, _LEAF = 5, 13
_DEEPEST = 20


class UnusualPageError(Exception):
    """A page or a row that only SQLite can judge: unusual, or damaged."""


class PageFile:
    """The pages of one open file, numbered from 1."""

    def __init__(self, file: BufferedReader) -> None:
        self._file = file.fileno()
        size, reserved = struct.unpack(">16xH2xB", os.pread(self._file, 21, 0))
        self.size = 65_536 if size == 1 else int(size)
        """bytes of a page"""
        self.usable = self.size - int(reserved)
        """bytes of a page that SQLite uses; the rest belongs to extensions"""
        self.count = os.fstat(self._file).st_size // self.size

    def read(self, numbers: Ints) -> NDArray[np.uint8]:
        """Return some pages end to end, then ``PAD`` zero bytes; pages that are neighbours are read at once."""
        if not len(numbers) or int(numbers.min()) < 1 or int(numbers.max()) > self.count:
            raise UnusualPageError
        buffer = np.zeros(len(numbers) * self.size + PAD, dtype=np.uint8)
        cuts = np.flatnonzero(np.diff(numbers) != 1) + 1
        bounds = [0, *cuts.tolist(), len(numbers)]
        view = memoryview(buffer.data)
        for first, last in pairwise(bounds):
            part = view[first * self.size : last * self.size]
            if os.preadv(self._file, [part], (int(numbers[first]) - 1) * self.size) != len(part):
                raise UnusualPageError
        return buffer


def leaf_pages(pages: PageFile, root: int) -> Ints:
    """Return the numbers of the pages that hold a table's rows, in row order.

    Raises ``UnusualPageError`` where the tree under ``root`` is not what a rowid table's is.
    """
    level = np.array([root], dtype=np.int64)
    for _ in range(_DEEPEST):
        # every level of the tree has one kind of page; the leaves themselves are checked when they are read
        if root == 1 or len(level) > pages.count:
            raise UnusualPageError
        kind = int(pages.read(level[:1])[0])
        if kind == _LEAF:
            return level
        if kind != _INTERIOR:
            raise UnusualPageError
        level = np.concatenate([_children(pages, number) for number in level.tolist()])
    raise UnusualPageError


def _children(pages: PageFile, number: int) -> Ints:
    """Return the pages below an interior page: one per cell, and the right-most."""
    page = pages.read(np.array([number]))
    raw = page.tobytes()
    kind, cells, right = struct.unpack(">B2xH3xI", raw[:12])
    if kind != _INTERIOR or 12 + 2 * cells > pages.usable:
        raise UnusualPageError
    at = np.frombuffer(raw, dtype=">u2", count=cells, offset=12).astype(np.int64)
    if len(at) and int(at.max()) > pages.usable - 4:
        raise UnusualPageError
    four = page[at[:, None] + np.arange(4)].astype(np.int64)
    below = (four << np.array([24, 16, 8, 0])).sum(axis=1)
    return np.append(below, right).astype(np.int64)
