"""Call stacks: those of calls that block, compiled frames and lines of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from metric_rows import python_mark
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.model import NativeFrame, PythonFrame

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Stack, Trace


def with_backtrace(builder: TraceBuilder, name: str, start: int, end: int, stack: int, **options: int) -> TraceBuilder:
    """Add a call as a capture with stacks has it: the plain row, and around it the one that carries the stack."""
    correlation = 1000 + start
    builder.api(f"{name}_v3020", start, end, correlation=correlation, **options)
    return builder.api(name, start - 1, end + 1, correlation=correlation, eventClass=67, callchainId=stack, **options)


def stack_of(trace: Trace, name: str) -> Stack | None:
    row = next(row for row in range(len(trace.calls)) if trace.names[trace.calls.name[row]] == name)
    index = int(trace.calls.stack[row])
    return None if index < 0 else trace.stacks[index]


def test_only_calls_that_block_have_their_stack_looked_up(tmp_path: Path) -> None:
    builder = TraceBuilder().stack(1, [("launcher", "a.so")]).stack(2, [("waiter", "a.so"), ("main", "a.out")])
    builder.kernel(50, 60, call=(10, 12))
    with_backtrace(builder, "cudaLaunchKernel", 10, 12, 1)
    with_backtrace(builder, "cudaStreamSynchronize", 20, 90, 2)
    trace = read_back(builder, tmp_path)
    assert stack_of(trace, "cudaLaunchKernel") is None
    waiter = stack_of(trace, "cudaStreamSynchronize")
    assert waiter is not None
    assert waiter.native == (NativeFrame("waiter", "a.so"), NativeFrame("main", "a.out"))
    assert len(trace.stacks) == 1


def test_an_asynchronous_copy_blocks_where_it_copies_pageable_memory(tmp_path: Path) -> None:
    builder = TraceBuilder().stack(1, [("copier", "a.so")])
    for start, memory in ((10, "pinned"), (100, "pageable")):
        builder.copy(start + 5, start + 9, "h2d", memory=memory, correlation=1000 + start)
        with_backtrace(builder, "cudaMemcpyAsync", start, start + 20, 1)
    trace = read_back(builder, tmp_path)
    assert trace.calls.stack.tolist() == [-1, 0]


def test_equal_stacks_are_one(tmp_path: Path) -> None:
    builder = TraceBuilder().stack(1, [("a", "a.so")]).stack(2, [("a", "a.so")]).stack(3, [("b", "a.so")])
    for start, stack in ((10, 1), (30, 2), (50, 3)):
        with_backtrace(builder, "cudaFree", start, start + 5, stack)
    assert read_back(builder, tmp_path).calls.stack.tolist() == [0, 0, 1]


def test_lines_of_python_belong_to_the_call_whose_backtrace_row_starts_with_them_on_their_thread(
    tmp_path: Path,
) -> None:
    frames = [("&lt;lambda&gt;", "/app/model.py", 7), ("&lt;module&gt;", "/app/run.py", 3)]
    builder = with_backtrace(TraceBuilder().stack(1, [("wait", "a.so")]), "cudaDeviceSynchronize", 20, 90, 1)
    python_mark(builder, 19, frames)
    python_mark(builder, 19, [("other", "/app/other.py", 1)], thread=99)
    python_mark(builder, 20, [("late", "/app/late.py", 1)])
    found = stack_of(read_back(builder, tmp_path), "cudaDeviceSynchronize")
    assert found is not None
    assert found.python == (PythonFrame("<lambda>", "/app/model.py", 7), PythonFrame("<module>", "/app/run.py", 3))


def test_python_alone_is_a_stack_too(tmp_path: Path) -> None:
    builder = TraceBuilder().api("cudaFree_v3020", 10, 30, correlation=5)
    builder.api("cudaFree", 9, 31, correlation=5, eventClass=67)
    python_mark(builder, 9, [("f", "/app/f.py", 1)])
    found = stack_of(read_back(builder, tmp_path), "cudaFree")
    assert found is not None
    assert found.native == ()
    assert found.python == (PythonFrame("f", "/app/f.py", 1),)


def test_marks_without_their_payload_tell_nothing(tmp_path: Path) -> None:
    builder = with_backtrace(TraceBuilder().stack(1, [("wait", "a.so")]), "cudaDeviceSynchronize", 20, 90, 1)
    python_mark(builder, 19, None)
    found = stack_of(read_back(builder, tmp_path), "cudaDeviceSynchronize")
    assert found is not None
    assert found.python == ()


@pytest.mark.parametrize("payload", ["", "[]", "{}", '{"Frames": [{"Function": "x"}]}', "no json", '{"Frames": 3}'])
def test_a_payload_that_is_none_of_ours_is_no_stack(payload: str, tmp_path: Path) -> None:
    builder = with_backtrace(TraceBuilder().stack(1, [("wait", "a.so")]), "cudaDeviceSynchronize", 20, 90, 1)
    builder.mark("", 19, domain="Python Backtrace on CUDA", jsonText=payload)
    found = stack_of(read_back(builder, tmp_path), "cudaDeviceSynchronize")
    assert found is not None
    assert found.python == ()


def test_a_selected_part_keeps_the_stacks_of_its_calls(tmp_path: Path) -> None:
    from traceview.selection import select_window

    builder = TraceBuilder().stack(1, [("one", "a.so")]).stack(2, [("two", "a.so")])
    with_backtrace(builder, "cudaFree", 10, 20, 1)
    with_backtrace(builder, "cudaDeviceSynchronize", 5_000_010, 5_000_020, 2)
    part = select_window(read_back(builder, tmp_path), (4.0, 6.0))
    found = stack_of(part, "cudaDeviceSynchronize")
    assert found is not None
    assert found.native == (NativeFrame("two", "a.so"),)
