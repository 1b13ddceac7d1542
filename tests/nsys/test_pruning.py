"""A window reads what it needs of a file and gives what the same window of the whole trace gives."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.report import build_report
from traceview.errors import TraceviewError
from traceview.nsys.database import open_database
from traceview.nsys.reader import read_database
from traceview.reading import read
from traceview.render.json import render
from traceview.selection import select_window, window_bounds

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.sqlite"))
STEP_MS = 10
WINDOWS = [(0.0, float("inf")), (9.5, 20.5), (0.0, 0.001), (25.0, 29.0), (12.0, 13.0), (55.0, 56.0)]


def forwards(count: int, layout: str = "3.20.3") -> TraceBuilder:
    builder = TraceBuilder(layout)
    for number in range(count):
        at = number * STEP_MS * 1_000_000
        loads = [[(at + 1_000_000, at + 1_900_000)], [(at + 2_000_000, at + 3_900_000)]]
        computes = [[(at + 2_000_000, at + 4_000_000)], [(at + 4_010_000, at + 12_000_000)]]
        layered_forward(builder, start=at, loads=loads, computes=computes, number=number)
        builder.record(number, stream=13, call=(at + 500, at + 600), sync=number)
        builder.wait(number, stream=7, call=(at + 700, at + 800), sync=number)
    return builder


def answer(make) -> str:
    try:
        return render(build_report(make()))
    except TraceviewError as error:
        return str(error)


def check(path: Path, window: tuple[float, float]) -> None:
    whole = read(path)
    assert answer(lambda: read(path, window_ms=window)) == answer(lambda: select_window(whole, window))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("layout", ["none", "3.20.3", "3.28.1"])
def test_a_window_is_the_same_read_alone_or_cut_from_the_whole(tmp_path, layout, window):
    check(forwards(4, layout).write(tmp_path / "t.sqlite"), window)


@pytest.mark.parametrize("window", WINDOWS)
def test_work_that_was_launched_long_before_keeps_its_launch(tmp_path, window):
    builder = forwards(2).kernel(25_000_000, 28_000_000, stream=99, device=3, call=(100, 200))
    builder.api("cudaMalloc", 0, 26_000_000, thread=77)
    check(builder.write(tmp_path / "t.sqlite"), window)


@pytest.mark.parametrize("window", WINDOWS)
def test_migrations_and_call_stacks_are_read_in_whole(tmp_path, window):
    builder = forwards(3).migration(-5_000_000, 12_500_000)
    builder.api("cudaDeviceSynchronize", 12_000_000, 12_500_000, correlation=9_999)
    builder.api("cudaDeviceSynchronize", 11_999_000, 12_500_500, correlation=9_999, eventClass=67, callchainId=1)
    check(builder.stack(1, [("main", "app")]).write(tmp_path / "t.sqlite"), window)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_real_captures_too(path):
    whole = read(path)
    middle = (whole.end_ns - whole.start_ns) / 2e6
    for window in ((middle, middle + 5.0), (0.0, middle / 2)):
        check(path, window)


def test_little_is_read_of_what_lies_outside(tmp_path):
    path = forwards(200).write(tmp_path / "t.sqlite")
    database = open_database(path)
    with closing(database.connection):
        part = read_database(database, window=partial(window_bounds, window_ms=(500.0, 505.0)))
    whole = read(path)
    assert len(part.operations) < len(whole.operations) / 20
    # event records and waits are kept with their calls: 400 of 1200
    assert len(part.calls) < len(whole.calls) * 0.4
    assert (part.start_ns, part.end_ns) == (whole.start_ns, whole.end_ns)
