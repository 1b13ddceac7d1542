"""Copies by stream, direction and memory: sizes, pieces, rates and gaps that can be added up by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.copies import measure_copies, measure_migrations, median_piece, piece_quantiles
from traceview.report import Migration

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.report import CopyGroup

KIB = 1 << 10


def only(builder: TraceBuilder, folder: Path) -> CopyGroup:
    (group,) = measure_copies(read_back(builder, folder))
    return group


def three_copies() -> TraceBuilder:
    """Write copies of 4, 8 and 16 KiB: 10, 20 and 40 ns long, 5 and 15 ns apart, submitted in 2, 2 and 6 ns."""
    builder = TraceBuilder().copy(100, 110, "h2d", 4 * KIB, call=(10, 12)).copy(115, 135, "h2d", 8 * KIB, call=(20, 22))
    return builder.copy(150, 190, "h2d", 16 * KIB, call=(30, 36))


def test_a_trace_without_copies_has_no_group(tmp_path: Path) -> None:
    assert measure_copies(read_back(TraceBuilder().kernel(1, 2, call=(0, 1)), tmp_path)) == ()


def test_copies_of_one_kind_on_one_stream_are_one_group(tmp_path: Path) -> None:
    group = only(three_copies(), tmp_path)
    assert (group.device, group.direction, group.memory, group.stream) == (0, "h2d", "pinned", "4711/0/13")
    assert (group.pieces, group.n_bytes) == (3, 28 * KIB)
    assert (group.min_bytes, group.median_bytes, group.p95_bytes, group.max_bytes) == (4096, 8192, 16384, 16384)
    assert group.histogram == {"4096": 1, "8192": 1, "16384": 1}


def test_a_rate_is_over_the_busy_time_or_over_the_span(tmp_path: Path) -> None:
    group = only(three_copies(), tmp_path)
    assert (group.busy_ns, group.span_ns) == (70, 90)
    assert (group.rate_busy, group.rate_span) == (28 * KIB / 70, 28 * KIB / 90)


def test_gaps_and_submissions_have_medians(tmp_path: Path) -> None:
    group = only(three_copies(), tmp_path)
    assert (group.gap_median_ns, group.host_median_ns) == (10, 2)


def test_a_single_copy_has_no_gap(tmp_path: Path) -> None:
    assert only(TraceBuilder().copy(100, 110, call=(10, 12)), tmp_path).gap_median_ns is None


def test_copies_that_overlap_are_busy_once_and_leave_no_gap(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(100, 140, call=(1, 2)).copy(110, 120, call=(3, 4)).copy(130, 150, call=(5, 6))
    group = only(builder, tmp_path)
    assert (group.busy_ns, group.span_ns, group.gap_median_ns) == (50, 50, 0)


def test_a_copy_without_a_known_call_took_the_host_no_known_time(tmp_path: Path) -> None:
    assert only(TraceBuilder().copy(100, 110), tmp_path).host_median_ns is None


def test_a_copy_that_took_no_time_has_no_rate(tmp_path: Path) -> None:
    group = only(TraceBuilder().copy(100, 100, call=(1, 2)), tmp_path)
    assert (group.rate_busy, group.rate_span, group.n_bytes) == (None, None, 1 << 20)


def test_a_batch_counts_as_its_pieces(tmp_path: Path) -> None:
    """Sixteen pieces of 4 KiB in one row, beside one copy of 64 KiB: the typical piece has 4 KiB."""
    builder = TraceBuilder().copy(100, 110, "h2d", 64 * KIB, copyCount=16, call=(1, 2))
    group = only(builder.copy(120, 130, "h2d", 64 * KIB, call=(3, 4)), tmp_path)
    assert (group.pieces, group.n_bytes, group.median_bytes, group.p95_bytes) == (17, 128 * KIB, 4096, 65536)
    assert group.histogram == {"4096": 16, "65536": 1}


def test_stream_direction_and_memory_each_make_a_group_and_the_largest_comes_first(tmp_path: Path) -> None:
    builder = three_copies().copy(200, 210, "h2d", KIB, stream=17, call=(40, 41))
    builder.copy(220, 230, "d2h", 2 * KIB, call=(42, 43))
    builder.copy(240, 250, "h2d", 64 * KIB, memory="pageable", call=(44, 45))
    found = [(group.stream, group.direction, group.memory, group.n_bytes) for group in _groups(builder, tmp_path)]
    assert found == [
        ("4711/0/13", "h2d", "pageable", 64 * KIB),
        ("4711/0/13", "h2d", "pinned", 28 * KIB),
        ("4711/0/13", "d2h", "pinned", 2 * KIB),
        ("4711/0/17", "h2d", "pinned", KIB),
    ]


def _groups(builder: TraceBuilder, folder: Path) -> tuple[CopyGroup, ...]:
    return measure_copies(read_back(builder, folder))


@pytest.mark.parametrize(
    ("n_bytes", "power"), [(0, "0"), (1, "1"), (4095, "2048"), (4096, "4096"), (4097, "4096"), (1 << 40, str(1 << 40))]
)
def test_a_piece_stands_at_the_power_of_two_at_or_below_its_size(n_bytes: int, power: str, tmp_path: Path) -> None:
    assert only(TraceBuilder().copy(100, 110, "h2d", n_bytes, call=(1, 2)), tmp_path).histogram == {power: 1}


def test_a_quantile_is_the_smallest_size_that_enough_pieces_do_not_exceed() -> None:
    sizes, pieces = np.array([30, 10, 20, 10]), np.array([1, 4, 4, 1])
    assert piece_quantiles(sizes, pieces, (0.1, 0.5, 0.51, 0.9, 0.91, 1.0)) == [10, 10, 20, 20, 30, 30]


def test_the_median_piece_of_some_copies_is_that_of_their_pieces(tmp_path: Path) -> None:
    operations = read_back(three_copies(), tmp_path).operations
    assert median_piece(operations, np.array([1, 2])) == 8192
    assert median_piece(operations, np.array([], dtype=np.int64)) == 0


def test_migrations_go_by_direction_and_cause(tmp_path: Path) -> None:
    builder = TraceBuilder().migration(100, 110, "h2d", 4096, cause=2).migration(105, 120, "h2d", 8192, cause=2)
    builder.migration(130, 140, "d2h", 64, cause=4).migration(150, 160, "h2d", 32, cause=9)
    assert measure_migrations(read_back(builder, tmp_path)) == (
        Migration(0, "h2d", "unknown", 1, 32, 10),
        Migration(0, "h2d", "page_fault", 2, 12288, 20),
        Migration(0, "d2h", "eviction", 1, 64, 10),
    )
