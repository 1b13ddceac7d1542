"""Interval arithmetic against sets of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceview import intervals
from traceview.intervals import Intervals

Pairs = list[tuple[int, int]]

moments = st.integers(-20, 20)
any_pairs = st.lists(st.tuples(moments, moments), max_size=8)
"""empty, reversed, overlapping, repeated: whatever a trace may hold"""


def columns(pairs: Pairs) -> tuple[list[int], list[int]]:
    return [start for start, _ in pairs], [end for _, end in pairs]


def members(pairs: Pairs) -> set[int]:
    return {moment for start, end in pairs for moment in range(start, end)}


def as_set(found: Intervals) -> set[int]:
    """Return the integers of a set after checking that it is one: sorted, disjoint, without empty members."""
    starts, ends = found.start.tolist(), found.end.tolist()
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    assert all(end < start for end, start in zip(ends, starts[1:], strict=False)), "touching members are one"
    assert found.start.dtype == found.end.dtype == np.int64
    return members(list(zip(starts, ends, strict=True)))


def disjoint(found: Intervals) -> set[int]:
    """Return the integers of a result whose members may touch."""
    starts, ends = found.start.tolist(), found.end.tolist()
    assert all(start < end for start, end in zip(starts, ends, strict=True))
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))
    return members(list(zip(starts, ends, strict=True)))


def union(pairs: Pairs) -> Intervals:
    return intervals.union(*columns(pairs))


@given(any_pairs)
def test_union_holds_every_moment_of_any_interval(pairs: Pairs) -> None:
    assert as_set(union(pairs)) == members(pairs)


@given(any_pairs)
def test_length_counts_each_moment_once(pairs: Pairs) -> None:
    assert union(pairs).length == len(members(pairs))


@given(any_pairs, any_pairs)
def test_intersect_holds_what_lies_in_both(a: Pairs, b: Pairs) -> None:
    assert disjoint(intervals.intersect(union(a), union(b))) == members(a) & members(b)


@given(any_pairs, any_pairs)
def test_subtract_holds_what_lies_in_the_first_alone(a: Pairs, b: Pairs) -> None:
    assert disjoint(intervals.subtract(union(a), union(b))) == members(a) - members(b)


@given(any_pairs, any_pairs)
def test_operations_do_not_care_about_touching_members(a: Pairs, b: Pairs) -> None:
    single = sorted(members(a))
    cut = Intervals(np.array(single, dtype=np.int64), np.array(single, dtype=np.int64) + 1)
    assert disjoint(intervals.intersect(cut, union(b))) == members(a) & members(b)
    assert disjoint(intervals.subtract(cut, union(b))) == members(a) - members(b)
    assert disjoint(intervals.subtract(union(b), cut)) == members(b) - members(a)


@given(any_pairs, moments, moments)
def test_gaps_hold_what_is_left_free(pairs: Pairs, low: int, high: int) -> None:
    assert as_set(intervals.gaps(union(pairs), low, high)) == set(range(low, high)) - members(pairs)


@given(any_pairs, moments, moments)
def test_clip_holds_what_lies_inside(pairs: Pairs, low: int, high: int) -> None:
    assert as_set(intervals.clip(union(pairs), low, high)) == set(range(low, high)) & members(pairs)


@given(any_pairs, any_pairs)
def test_coverage_counts_the_moments_of_each_query(pairs: Pairs, queries: Pairs) -> None:
    found = intervals.coverage(union(pairs), *columns(queries))
    assert found.tolist() == [len(members(pairs) & set(range(low, high))) for low, high in queries]


@given(any_pairs, st.lists(moments))
def test_covering_names_the_member_that_holds_a_moment(pairs: Pairs, instants: list[int]) -> None:
    merged = union(pairs)
    for at, index in zip(instants, intervals.covering(merged, instants).tolist(), strict=True):
        holding = [i for i in range(len(merged.start)) if merged.start[i] <= at < merged.end[i]]
        assert index == (holding[0] if holding else -1)


@given(any_pairs, st.lists(moments))
def test_innermost_is_the_interval_that_was_opened_last(pairs: Pairs, instants: list[int]) -> None:
    for asked in (instants, sorted(instants)):
        found = intervals.innermost(*columns(pairs), asked).tolist()
        for at, index in zip(asked, found, strict=True):
            holding = [i for i, (start, end) in enumerate(pairs) if start <= at < end]
            last = max(holding, key=lambda i: (pairs[i][0], -pairs[i][1], i), default=-1)
            assert index == last


def test_nothing_in_gives_nothing_out() -> None:
    nothing = intervals.empty()
    assert as_set(nothing) == set()
    assert as_set(intervals.gaps(nothing, 3, 5)) == {3, 4}
    assert intervals.coverage(nothing, [0], [5]).tolist() == [0]
    assert intervals.covering(nothing, [0]).tolist() == [-1]
    assert intervals.innermost([], [], [0]).tolist() == [-1]


def test_absolute_times_in_ns_do_not_overflow() -> None:
    now = 1_700_000_000_000_000_000
    both = intervals.intersect(intervals.union([now], [now + 5]), intervals.union([now + 2, -now], [now + 9, now + 3]))
    assert both.length == 5


@pytest.mark.parametrize("kind", [np.int32, np.uint64])
def test_integers_of_any_type_come_out_as_int64(kind: Any) -> None:
    two = intervals.union(np.array([1, 5], dtype=kind), np.array([3, 7], dtype=kind))
    instants = np.array([2, 4], dtype=kind)
    assert as_set(two) == {1, 2, 5, 6}
    for found in (
        intervals.coverage(two, instants, instants + kind(2)),
        intervals.covering(two, instants),
        intervals.cut(np.array([1, 5], dtype=kind), np.array([3, 7], dtype=kind)).begin,
    ):
        assert found.dtype == np.int64


def test_questions_about_no_instant_have_no_answer_of_type_int64() -> None:
    two = intervals.union([1, 5], [3, 7])
    for found in (
        intervals.coverage(two, [], []),
        intervals.covering(two, []),
        intervals.covering(intervals.empty(), []),
        intervals.innermost([1], [3], []),
    ):
        assert (found.tolist(), found.dtype) == ([], np.int64)


def test_unsigned_instants_in_ns_are_not_rounded() -> None:
    """Beside int64, numpy compares uint64 as floats, which hold 53 bits."""
    now = 1_700_000_000_000_000_001
    one = intervals.union([now], [now + 5])
    instants = np.array([now - 1, now, now + 4, now + 5], dtype=np.uint64)
    assert intervals.covering(one, instants).tolist() == [-1, 0, 0, -1]
    assert intervals.coverage(one, instants, instants + np.uint64(1)).tolist() == [0, 1, 1, 0]
    assert intervals.innermost([now], [now + 5], instants).tolist() == [-1, 0, 0, -1]


def test_time_is_not_cut_by_intervals_without_length() -> None:
    begin, label = intervals.cut([5, 3], [5, 2])
    assert (begin.tolist(), begin.dtype, label.tolist()) == ([], np.int64, [-1])


def members_of(found: Intervals) -> Pairs:
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def test_touching_intervals_become_one() -> None:
    assert members_of(intervals.union([1, 3, 7], [3, 5, 9])) == [(1, 5), (7, 9)]
    assert members_of(intervals.union([1, 4], [3, 5])) == [(1, 3), (4, 5)]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (3, 6, []),
        (2, 7, [(2, 3), (6, 7)]),
        (1, 9, [(1, 3), (6, 9)]),
        (3, 9, [(6, 9)]),
        (0, 6, [(1, 3)]),
        (2, 2, []),
        (7, 2, []),
    ],
)
def test_what_is_clipped_at_the_edges_of_members_leaves_no_empty_one(low: int, high: int, expected: Pairs) -> None:
    """::

    0         ·██···███·
    """
    assert members_of(intervals.clip(intervals.union([1, 6], [3, 9]), low, high)) == expected


@pytest.mark.parametrize(
    ("ranges", "expected"),
    [
        ([(1, 3), (5, 7)], [-1, 0, 0, -1, -1, 1, 1, -1]),
        ([(1, 3), (3, 7)], [-1, 0, 0, 1, 1, 1, 1, -1]),
        ([(5, 7), (1, 3)], [-1, 1, 1, -1, -1, 0, 0, -1]),
        ([(1, 7), (3, 5)], [-1, 0, 0, 1, 1, 0, 0, -1]),
        ([(1, 5), (3, 7)], [-1, 0, 0, 1, 1, 1, 1, -1]),
        ([(1, 7), (2, 4), (4, 6)], [-1, 0, 1, 1, 2, 2, 0, -1]),
        ([(1, 7), (1, 4), (5, 6), (1, 4)], [-1, 3, 3, 3, 0, 2, 0, -1]),
        ([(1, 3), (4, 5), (4, 7)], [-1, 0, 0, -1, 1, 2, 2, -1]),
    ],
    ids=["apart", "touching", "not in order", "nested", "overlapping", "two in one", "equal", "the last two nested"],
)
def test_ranges_without_empty_ones_are_told_apart(ranges: Pairs, expected: list[int]) -> None:
    assert intervals.innermost(*columns(ranges), list(range(8))).tolist() == expected
    mixed = [0, 6, 2, 4, 1, 7, 3, 5]
    assert intervals.innermost(*columns(ranges), mixed).tolist() == [expected[at] for at in mixed]
