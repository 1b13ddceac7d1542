"""Arithmetic on sets of half-open intervals ``[start, end)``.

A set is two int64 arrays of one length, sorted, disjoint and without empty members. Every function is vectorised and
costs n log n; nothing here knows what the intervals stand for. In the drawings one character is one nanosecond::

    a           ███···███···        b           ·███████····
    union       ████████████        intersect   ·██···██····
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Ints = NDArray[np.int64]


class Intervals(NamedTuple):
    """A sorted, disjoint set of ``[start, end)``: two int64 arrays of one length, in ns."""

    start: Ints
    end: Ints

    @property
    def length(self) -> int:
        """Return the total length of the set in ns."""
        return int((self.end - self.start).sum())


_NOTHING = np.empty(0, dtype=np.int64)


def empty() -> Intervals:
    """Return the set without members."""
    return Intervals(_NOTHING, _NOTHING)


def union(start: ArrayLike, end: ArrayLike) -> Intervals:
    """Merge any intervals, overlapping or not, into a set; touching ones become one.

    ::

        in   ███···██····
             ··██····██··
        out  ████··████··
    """
    starts, ends = np.asarray(start, dtype=np.int64), np.asarray(end, dtype=np.int64)
    kept = ends > starts
    if not kept.all():
        starts, ends = starts[kept], ends[kept]
    if not len(starts):
        return empty()
    if np.all(starts[1:] > ends[:-1]):
        return Intervals(starts, ends)  # a set already, as most of what runs on one stream is
    if np.any(starts[1:] < starts[:-1]):
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    opens = np.concatenate(([True], starts[1:] > reach[:-1]))
    closes = np.concatenate((opens[1:], [True]))
    return Intervals(starts[opens], reach[closes])


def intersect(a: Intervals, b: Intervals) -> Intervals:
    """Return what lies in both sets.

    ::

        a    █████···███·
        b    ··██████·██·
        out  ··███····██·
    """
    if not len(a.start) or not len(b.start):
        return empty()
    if len(a.start) > len(b.start):
        a, b = b, a  # each member of one is looked for among those of the other
    first = b.end.searchsorted(a.start, side="right")
    count = np.maximum(b.start.searchsorted(a.end, side="left") - first, 0)
    total = count.cumsum()
    if not total[-1]:
        return empty()
    of_a = np.arange(len(count)).repeat(count)
    of_b = np.arange(len(of_a)) + (first - (total - count)).repeat(count)
    return Intervals(np.maximum(a.start[of_a], b.start[of_b]), np.minimum(a.end[of_a], b.end[of_b]))


def subtract(a: Intervals, b: Intervals) -> Intervals:
    """Return what lies in ``a`` and not in ``b``.

    ::

        a    █████···███·
        b    ··██████·██·
        out  ██······█···
    """
    if not len(a.start) or not len(b.start):
        return a
    low, high = int(a.start[0]), int(a.end[-1])
    return intersect(a, gaps(_members(b, low, high), low, high))


def gaps(a: Intervals, low: int, high: int) -> Intervals:
    """Return what ``a`` leaves free of ``[low, high)``.

    ::

        a    ··███··██···
        out  ██···██··███
    """
    starts = np.concatenate((np.array([low], dtype=np.int64), a.end))
    ends = np.concatenate((a.start, np.array([high], dtype=np.int64)))
    starts, ends = np.maximum(starts, low), np.minimum(ends, high)
    kept = ends > starts
    return Intervals(starts[kept], ends[kept])


def clip(a: Intervals, low: int, high: int) -> Intervals:
    """Return the part of ``a`` inside ``[low, high)``."""
    part = _members(a, low, high)
    return Intervals(np.maximum(part.start, low), np.minimum(part.end, high)) if high > low else empty()


def coverage(a: Intervals, low: ArrayLike, high: ArrayLike) -> Ints:
    """Return, for each query ``[low, high)``, how many ns of it ``a`` covers; a reversed query covers 0.

    ::

        a      ██··███·
        query  ·█████··   → 3
    """
    lows, highs = np.asarray(low, dtype=np.int64), np.asarray(high, dtype=np.int64)
    if not lows.size:
        return np.zeros(lows.shape, dtype=np.int64)
    near = _members(a, int(min(lows.min(), highs.min())), int(max(lows.max(), highs.max())))
    covered: Ints = np.maximum(_covered_before(near, highs) - _covered_before(near, lows), 0)
    return covered


def _members(a: Intervals, low: int, high: int) -> Intervals:
    """Return the members of ``a`` that have a part inside ``[low, high)``, uncut."""
    first = int(a.end.searchsorted(low, side="right"))
    last = max(int(a.start.searchsorted(high, side="left")), first)
    return Intervals(a.start[first:last], a.end[first:last])


def _covered_before(a: Intervals, at: Ints) -> Ints:
    """Return how many ns of ``a`` lie before each instant."""
    total = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(a.end - a.start)))
    whole = np.searchsorted(a.start, at, side="right")
    if not len(a.start):
        return np.zeros_like(at)
    last = np.maximum(whole - 1, 0)
    inside: Ints = np.maximum(np.minimum(at, a.end[last]) - a.start[last], 0)
    return total[last] + inside


def covering(a: Intervals, at: ArrayLike) -> Ints:
    """Return the index of the member that holds each instant, or -1."""
    instants = np.asarray(at, dtype=np.int64)
    if not len(a.start):
        return np.full(instants.shape, -1, dtype=np.int64)
    index = np.searchsorted(a.start, instants, side="right") - 1
    held = (index >= 0) & (instants < a.end[np.maximum(index, 0)])
    return np.where(held, index, -1)


def innermost(start: ArrayLike, end: ArrayLike, at: ArrayLike) -> Ints:
    """Return, for each instant, which interval that holds it was opened last, or -1: the innermost of nested ranges.

    ::

        0     ██████████··
        1     ··█████·····
        at    ·^··^····^·^   → 0, 1, 0, -1

    Intervals may be nested, overlap partly or share a start (then the shorter one is inside). Of equal intervals the
    later in the input wins.
    """
    return cut(start, end).at(at)


class Segments(NamedTuple):
    """Time cut where the innermost of some intervals changes."""

    begin: Ints
    """when each segment begins; it lasts until the next one"""
    label: Ints
    """the innermost interval before the first segment (-1) and in each, -1 where there is none"""

    def at(self, at: ArrayLike) -> Ints:
        """Return the innermost interval of each instant, or -1."""
        instants = np.asarray(at, dtype=np.int64)
        found: Ints
        if np.all(instants[1:] >= instants[:-1]):
            # many instants in order are cut at few begins sooner than each is looked for among them
            cuts = np.searchsorted(instants, self.begin, side="left")
            found = np.repeat(self.label, np.diff(cuts, prepend=0, append=len(instants)))
        else:
            found = self.label[np.searchsorted(self.begin, instants, side="right")]
        return found


def cut(start: ArrayLike, end: ArrayLike) -> Segments:
    """Cut time where the innermost of some intervals changes, for many instants to be looked up: see ``innermost``."""
    starts, ends = np.asarray(start, dtype=np.int64), np.asarray(end, dtype=np.int64)
    begin, label = _segments(starts, ends)
    return Segments(begin, np.append(-1, label))


def _segments(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    order = np.lexsort((-ends, starts))
    by_start, by_end = starts[order], ends[order]
    if np.all(by_end > by_start) and np.all(by_start[1:] >= by_end[:-1]):
        # beside each other, as ranges of one kind mostly are: each begins its own segment, and its end one of nothing
        nothing = np.full(len(order), -1, dtype=np.int64)
        return np.stack((by_start, by_end), axis=1).ravel(), np.stack((order, nothing), axis=1).ravel()
    return _nested_segments(order, by_start.tolist(), by_end.tolist())


def _nested_segments(order: Ints, by_start: list[int], by_end: list[int]) -> tuple[Ints, Ints]:
    begins: list[int] = []
    labels: list[int] = []
    open_: list[int] = []

    def close_until(now: int) -> None:
        while open_ and by_end[open_[-1]] <= now:
            at = by_end[open_.pop()]
            while open_ and by_end[open_[-1]] <= at:
                open_.pop()
            begins.append(at)
            labels.append(open_[-1] if open_ else -1)

    for index, begin in enumerate(by_start):
        if by_end[index] <= begin:
            continue
        close_until(begin)
        open_.append(index)
        begins.append(begin)
        labels.append(index)
    close_until(max(by_end))
    label = np.array(labels, dtype=np.int64)
    return np.array(begins, dtype=np.int64), np.where(label >= 0, order[np.maximum(label, 0)], -1)
