"""Turns Nsight's scattered ids into dense indices: strings, streams, threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from traceview.model import Stream, Thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from traceview.model import Ints


@dataclass
class NameTable:
    """Texts in the order in which they were first seen; the same text always has the same index."""

    texts: list[str] = field(default_factory=list)
    index: dict[str, int] = field(default_factory=dict)

    def add(self, text: str) -> int:
        """Return the index of a text, adding it when it is new."""
        found = self.index.get(text)
        if found is None:
            found = self.index[text] = len(self.texts)
            self.texts.append(text)
        return found

    def add_all(self, ids: Ints, texts: Mapping[int, str]) -> Ints:
        """Return the index of each id's text; an id without text is named ``[unknown ID]``, a negative one is -1."""
        known = distinct(ids)
        dense = [self.add(texts.get(number, f"[unknown {number}]")) if number >= 0 else -1 for number in known.tolist()]
        return np.array(dense, dtype=np.int64)[np.searchsorted(known, ids)]


def distinct(values: Ints) -> Ints:
    """Return the sorted distinct values; fast where equal values stand in runs."""
    if not len(values):
        return values
    changes = np.concatenate(([True], values[1:] != values[:-1]))
    return np.unique(values[changes])


def process_of(identity: Ints) -> Ints:
    """Return the process id inside serialised process or thread ids (bits 24 to 47)."""
    return (identity >> 24) & 0xFFFFFF


def thread_of(identity: Ints) -> Ints:
    """Return the thread id inside serialised thread ids (bits 0 to 23)."""
    return identity & 0xFFFFFF


def index_threads(groups: Iterable[Ints]) -> tuple[tuple[Thread, ...], list[Ints]]:
    """Return the threads named by serialised ids, and for each group of ids their indices."""
    columns = [(group & 0xFFFFFFFFFFFF) for group in groups]
    known = distinct(np.concatenate([distinct(column) for column in columns]))
    threads = tuple(Thread(*pair) for pair in zip(process_of(known).tolist(), thread_of(known).tolist(), strict=True))
    return threads, [np.searchsorted(known, column) for column in columns]


def index_streams(
    groups: Iterable[dict[str, Ints]], loose: Iterable[dict[str, Ints]] = ()
) -> tuple[tuple[Stream, ...], list[Ints]]:
    """Return the streams named by (pid, device, context, green, stream) columns, and each group's indices.

    Rows of ``loose`` groups, which follow the others in the result, may name a wrong device (schema 3.25 writes device
    0 for synchronisations of any): they go by process, context and id to a stream of the other groups if there is one.
    """
    seen: dict[Stream, int] = {}
    indices = [_index(group, seen, {}) for group in groups]
    strict = {(stream.process, stream.context, stream.number): index for stream, index in seen.items()}
    indices += [_index(group, seen, strict) for group in loose]
    ordered = sorted(seen)
    rank = np.zeros(max(len(seen), 1), dtype=np.int64)
    for position, stream in enumerate(ordered):
        rank[seen[stream]] = position
    return tuple(ordered), [rank[index] for index in indices]


def _index(group: dict[str, Ints], seen: dict[Stream, int], known: Mapping[tuple[int, int, int], int]) -> Ints:
    """Return the number of each row's stream, adding streams that neither ``known`` nor ``seen`` has."""
    keys = [process_of(group["pid"]), group["device"], group["context"], group["green"], group["stream"]]
    codes = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        values = distinct(key)
        codes = codes * max(len(values), 1) + np.searchsorted(values, key)
    different = distinct(codes)
    positions = np.searchsorted(different, codes)
    example = np.zeros(len(different), dtype=np.int64)
    example[positions] = np.arange(len(codes))
    numbers = []
    for row in zip(*(key[example].tolist() for key in keys), strict=True):
        stream = Stream(*row)
        place = (stream.process, stream.context, stream.number)
        numbers.append(known[place] if place in known else seen.setdefault(stream, len(seen)))
    return np.array(numbers, dtype=np.int64)[positions] if numbers else positions
