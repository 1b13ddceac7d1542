"""Turns Nsight's scattered ids into dense indices: strings, streams, threads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.kinds import UNNAMED
from traceview.model import Stream, Thread

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from traceview.model import Ints


_TABLE_SIZE = 1 << 20
"""Span of ids up to which a table of all of them beats a binary search for each."""


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
        dense = [self.add(texts.get(number, f"{UNNAMED}{number}]")) if number >= 0 else -1 for number in known.tolist()]
        return translated(ids, known, indices(dense))


def distinct(values: Ints) -> Ints:
    """Return the sorted distinct values; fast where equal values stand in runs."""
    if not len(values):
        return values
    return np.unique(values[run_starts(values)])


def run_starts(*columns: Ints) -> Ints:
    """Return the rows that differ from the row before them in any of some columns; the first row does."""
    changed = np.zeros(len(columns[0]), dtype=bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)


def positions(known: Ints, values: Ints) -> Ints:
    """Return where each value stands among the sorted distinct values, all of which are known."""
    if len(known) == 1:
        return np.zeros(len(values), dtype=np.int64)
    first, last = (int(known[0]), int(known[-1])) if len(known) else (0, _TABLE_SIZE)
    if last - first < _TABLE_SIZE:
        table = np.zeros(last - first + 1, dtype=np.int64)
        table[np.subtract(known, first, dtype=np.int64)] = np.arange(len(known))
        return table[np.subtract(values, first, dtype=np.int64)]
    return np.searchsorted(known, values)


def translated(values: Ints, known: Ints, meanings: Ints) -> Ints:
    """Return the meaning of each value; ``meanings`` are those of the sorted distinct values."""
    if len(known) and known[0] >= 0 and known[-1] < _TABLE_SIZE:
        table = np.zeros(int(known[-1]) + 1, dtype=meanings.dtype)
        table[known] = meanings
        return table[values]
    return meanings[positions(known, values)]


def small(values: Any) -> Ints:
    """Return codes of an enumeration in one byte each."""
    narrow: Ints = np.array(values, dtype="int8")
    return narrow


def indices(values: Any) -> Ints:
    """Return indices into streams, threads or names in four bytes each."""
    narrow: Ints = np.array(values, dtype="int32")
    return narrow


def process_of(identity: Ints) -> Ints:
    """Return the process id inside serialised process or thread ids (bits 24 to 47)."""
    return (identity >> 24) & 0xFFFFFF


def thread_of(identity: Ints) -> Ints:
    """Return the thread id inside serialised thread ids (bits 0 to 23)."""
    return identity & 0xFFFFFF


def index_threads(groups: Iterable[Ints]) -> tuple[tuple[Thread, ...], list[Ints]]:
    """Return the threads named by serialised ids, and for each group of ids their indices."""
    runs = [(run_starts(group), group) for group in groups]
    columns = [group[starts] & 0xFFFFFFFFFFFF for starts, group in runs]
    known = distinct(np.concatenate(columns))
    threads = tuple(Thread(*pair) for pair in zip(process_of(known).tolist(), thread_of(known).tolist(), strict=True))
    dense = [indices(np.searchsorted(known, column)) for column in columns]
    return threads, [spread(index, starts, len(group)) for index, (starts, group) in zip(dense, runs, strict=True)]


def spread(values: Ints, starts: Ints, rows: int) -> Ints:
    """Return the value of each row's run, for runs that start at some rows; takes no memory where all are the same."""
    if len(values) and (values == values[0]).all():
        return np.broadcast_to(values[0], rows)
    return np.repeat(values, np.diff(starts, append=rows))


def index_streams(
    groups: Iterable[dict[str, Ints]], loose: Iterable[dict[str, Ints]] = ()
) -> tuple[tuple[Stream, ...], list[Ints]]:
    """Return the streams named by (pid, device, context, green, stream) columns, and each group's indices.

    Rows of ``loose`` groups, which follow the others in the result, may name a wrong device (schema 3.25 writes device
    0 for synchronisations of any): they go by process, context and id to a stream of the other groups if there is one.
    """
    seen: dict[Stream, int] = {}
    numbers = [_index(group, seen, {}) for group in groups]
    strict = {(stream.process, stream.context, stream.number): index for stream, index in seen.items()}
    numbers += [_index(group, seen, strict) for group in loose]
    ordered = sorted(seen)
    rank = np.zeros(max(len(seen), 1), dtype=np.int64)
    for position, stream in enumerate(ordered):
        rank[seen[stream]] = position
    dense = indices(rank)
    return tuple(ordered), [dense[index] for index in numbers]


def combined(columns: Sequence[Ints]) -> Ints:
    """Return one number per row that is the same for rows that agree in all columns, and for no others."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values = distinct(column)
        codes = codes * max(len(values), 1) + positions(values, column)
    return codes


def _index(group: dict[str, Ints], seen: dict[Stream, int], known: Mapping[tuple[int, int, int], int]) -> Ints:
    """Return the number of each row's stream, adding streams that neither ``known`` nor ``seen`` has."""
    columns = [group[name] for name in ("pid", "device", "context", "green", "stream")]
    starts = run_starts(*columns)
    keys = [column[starts] for column in columns]
    keys[0] = process_of(keys[0])
    codes = combined(keys)
    different = distinct(codes)
    place_of = np.searchsorted(different, codes)
    example = np.zeros(len(different), dtype=np.int64)
    example[place_of] = np.arange(len(codes))
    numbers = []
    for row in zip(*(key[example].tolist() for key in keys), strict=True):
        stream = Stream(*row)
        place = (stream.process, stream.context, stream.number)
        numbers.append(known[place] if place in known else seen.setdefault(stream, len(seen)))
    return spread(np.array(numbers, dtype=np.int64)[place_of], starts, len(columns[0]))
