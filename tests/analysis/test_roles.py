"""What an operation of a forward is there for, by its range, its kind and its stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.forwards import find_forwards
from traceview.analysis.roles import Role, is_mover, load_streams

if TYPE_CHECKING:
    from pathlib import Path

MOVER = "transfer_kv_all_layer"
LATER = 2000


def roles(builder: TraceBuilder, folder: Path) -> dict[int, str]:
    """Return the role of each operation of the only forward by its start."""
    trace = read_back(builder, folder)
    (forward,) = find_forwards(trace)
    starts = trace.operations.start[forward.operations].tolist()
    return {start: Role(role).name for start, role in zip(starts, forward.role.tolist(), strict=True)}


def named() -> TraceBuilder:
    """Write a forward that loads on stream 13 in [10, 20) and computes on stream 7 in [30, 60) of its host."""
    builder = TraceBuilder().range("forward 0", 0, 1000)
    builder.range("load layer 0", 10, 20).copy(100, 110, "h2d", 1 << 20, call=(11, 12))
    return builder.range("compute layer 0", 30, 60).kernel(110, 120, call=(31, 32))


def test_ranges_say_what_loads_and_what_computes(tmp_path: Path) -> None:
    assert roles(named(), tmp_path) == {100: "LOAD", 110: "COMPUTE"}


def test_whatever_a_load_range_launches_loads(tmp_path: Path) -> None:
    builder = named().kernel(200, 210, name=MOVER, stream=9, call=(13, 14)).memset(220, 221, stream=9, call=(15, 16))
    builder.copy(230, 231, "d2h", 8, stream=9, call=(17, 18))
    assert roles(builder, tmp_path) == {100: "LOAD", 110: "COMPUTE", 200: "LOAD", 220: "LOAD", 230: "LOAD"}


def test_a_compute_range_computes_reads_back_and_takes_input(tmp_path: Path) -> None:
    builder = named().graph(200, 210, call=(33, 34)).memset(220, 221, call=(35, 36))
    builder.copy(230, 231, "d2d", 8, stream=7, call=(37, 38)).copy(240, 241, "d2h", 8, stream=7, call=(39, 40))
    builder.copy(250, 251, "h2d", 8, stream=13, call=(41, 42)).copy(260, 261, "h2h", 8, stream=7, call=(43, 44))
    found = roles(builder, tmp_path)
    assert [found[start] for start in (200, 220, 230)] == ["COMPUTE"] * 3
    assert [found[start] for start in (240, 250, 260)] == ["READBACK", "INPUT", "OTHER"]


def test_what_no_range_names_goes_by_its_kind_and_its_stream(tmp_path: Path) -> None:
    builder = (
        named().copy(200, 201, "h2d", 8, stream=13, call=(70, 71)).copy(210, 211, "h2d", 8, stream=7, call=(72, 73))
    )
    builder.copy(220, 221, "d2h", 8, stream=13, call=(74, 75)).kernel(230, 231, stream=7, call=(76, 77))
    builder.kernel(240, 241, stream=9, call=(78, 79)).copy(250, 251, "d2d", 8, stream=7, call=(80, 81))
    found = roles(builder, tmp_path)
    assert [found[start] for start in (200, 210, 220)] == ["LOAD", "INPUT", "WRITEBACK"]
    assert [found[start] for start in (230, 240, 250)] == ["COMPUTE", "OTHER", "COMPUTE"]


def test_where_nothing_is_named_streams_tell(tmp_path: Path) -> None:
    """Stream 13 carries nearly all that goes to the device, stream 17 too little to be one that loads."""
    builder = TraceBuilder().range("forward 0", 0, 1000).copy(100, 110, "h2d", 1 << 20, call=(11, 12))
    builder.copy(120, 121, "h2d", 64, stream=17, call=(13, 14)).kernel(130, 140, call=(15, 16))
    builder.kernel(150, 160, name=MOVER, stream=19, call=(17, 18)).memset(170, 171, stream=7, call=(19, 20))
    found = roles(builder, tmp_path)
    assert found == {100: "LOAD", 120: "INPUT", 130: "COMPUTE", 150: "LOAD", 170: "COMPUTE"}


def test_where_loads_are_named_a_mover_kernel_outside_of_them_is_no_load(tmp_path: Path) -> None:
    builder = named().kernel(200, 210, name=MOVER, stream=19, call=(70, 71))
    assert roles(builder, tmp_path)[200] == "OTHER"


def test_forwards_do_not_tell_each_other_which_stream_computes(tmp_path: Path) -> None:
    """The second forward computes on stream 9 by name; that the first did on stream 7 says nothing of it."""
    builder = named().range("forward 1", LATER, LATER + 1000).range("compute layer 0", LATER + 30, LATER + 60)
    builder.kernel(LATER + 110, LATER + 120, stream=9, call=(LATER + 31, LATER + 32))
    builder.kernel(LATER + 200, LATER + 210, stream=7, call=(LATER + 70, LATER + 71))
    trace = read_back(builder, tmp_path)
    second = find_forwards(trace)[1]
    assert [Role(role).name for role in second.role.tolist()] == ["COMPUTE", "OTHER"]


@pytest.mark.parametrize("name", [MOVER, "void kvcacheio::copy<1>", "hicache_write", "kv_cache_load_kernel"])
def test_kernels_that_move_a_cache_are_known_by_name(name: str, tmp_path: Path) -> None:
    trace = read_back(TraceBuilder().kernel(1, 2, name=name).kernel(3, 4, name="gemm").copy(5, 6), tmp_path)
    assert is_mover(trace).tolist() == [True, False, False]


@pytest.mark.parametrize(("n_bytes", "carries"), [(100, True), (99, False)])
def test_a_tenth_of_the_bytes_makes_a_load_stream(n_bytes: int, carries: bool, tmp_path: Path) -> None:
    builder = TraceBuilder().copy(1, 2, "h2d", 1000 - n_bytes).copy(3, 4, "h2d", n_bytes, stream=17)
    trace = read_back(builder.copy(5, 6, "d2h", 5000, stream=19).kernel(7, 8), tmp_path)
    found = dict(zip([stream.number for stream in trace.streams], load_streams(trace, is_mover(trace)), strict=True))
    assert found == {7: False, 13: True, 17: carries, 19: False}


@pytest.mark.parametrize(("movers", "carries"), [(2, True), (1, False), (0, False)])
def test_mostly_mover_kernels_make_a_load_stream(movers: int, carries: bool, tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(1, 2)
    for at in range(movers):
        builder.kernel(10 + at, 11 + at, name=MOVER)
    trace = read_back(builder, tmp_path)
    assert load_streams(trace, is_mover(trace)).tolist() == [carries]
