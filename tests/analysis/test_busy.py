"""When streams, threads and devices were busy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.busy import Busy
from traceview.model import CallKind, Direction

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.intervals import Intervals

OTHER_THREAD = 4799


def busy(builder: TraceBuilder, folder: Path) -> Busy:
    return Busy(read_back(builder, folder))


def stream(found: Busy, number: int, device: int = 0) -> int:
    (index,) = (at for at, one in enumerate(found.trace.streams) if (one.number, one.device) == (number, device))
    return index


def thread(found: Busy, number: int) -> int:
    (index,) = (at for at, one in enumerate(found.trace.threads) if one.number == number)
    return index


def members(found: Intervals) -> list[tuple[int, int]]:
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def scene() -> TraceBuilder:
    """Write work on three streams of one device and on one of another."""
    builder = TraceBuilder().kernel(100, 200, call=(1, 2)).memset(190, 210, call=(3, 4)).kernel(300, 310, call=(5, 6))
    builder.copy(120, 150, "h2d", stream=13, call=(7, 8)).copy(140, 180, "h2d", stream=17, call=(9, 10))
    builder.copy(400, 410, "d2h", stream=17, call=(11, 12)).graph(500, 510, stream=17, call=(13, 14))
    return builder.kernel(250, 260, device=1, context=2, call=(15, 16)).copy(
        100, 500, "h2d", device=1, context=2, stream=13, call=(17, 18)
    )


def test_a_stream_is_busy_with_whatever_it_runs(tmp_path: Path) -> None:
    found = busy(scene(), tmp_path)
    assert members(found.stream(stream(found, 7))) == [(100, 210), (300, 310)]
    assert found.trace.operations.start[found.operations_on(stream(found, 17))].tolist() == [140, 400, 500]


def test_only_kernels_of_a_device_are_its_kernels(tmp_path: Path) -> None:
    found = busy(scene(), tmp_path)
    assert members(found.kernels(4711, 0)) == [(100, 200), (300, 310)]
    assert members(found.kernels(4711, 1)) == [(250, 260)]
    assert members(found.kernels(99, 0)) == []


def test_beside_a_stream_are_copies_of_one_direction_on_other_streams_of_its_device(tmp_path: Path) -> None:
    found = busy(scene(), tmp_path)
    assert members(found.copies_beside(stream(found, 7), Direction.H2D)) == [(120, 180)]
    assert members(found.copies_beside(stream(found, 13), Direction.H2D)) == [(140, 180)]
    assert members(found.copies_beside(stream(found, 7), Direction.D2H)) == [(400, 410)]
    assert members(found.copies_beside(stream(found, 7, device=1), Direction.H2D)) == [(100, 500)]


def test_a_thread_is_inside_its_own_calls_of_a_kind(tmp_path: Path) -> None:
    builder = TraceBuilder().device_sync(call=(10, 20)).api("cudaFree_v3020", 30, 40)
    builder.device_sync(call=(15, 90), thread=OTHER_THREAD).copy(100, 110, call=(50, 55))
    found = busy(builder, tmp_path)
    own = thread(found, 4711)
    assert members(found.calls(own, CallKind.SYNC)) == [(10, 20)]
    assert members(found.calls(own, CallKind.BLOCKING)) == [(30, 40)]
    assert members(found.calls(own, CallKind.ASYNC_COPY)) == [(50, 55)]
    assert members(found.calls(thread(found, OTHER_THREAD), CallKind.SYNC)) == [(15, 90)]
    assert found.trace.calls.start[found.calls_on(own)].tolist() == [10, 30, 50]


def test_a_copy_of_pageable_memory_makes_its_call_block(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(100, 110, memory="pageable", call=(10, 20)).copy(120, 130, call=(30, 40))
    found = busy(builder.copy(140, 150, memory="pageable"), tmp_path)
    assert [CallKind(kind) for kind in found.call_kinds] == [CallKind.BLOCKING, CallKind.ASYNC_COPY]
    assert [CallKind(kind) for kind in found.trace.calls.kind] == [CallKind.ASYNC_COPY] * 2
