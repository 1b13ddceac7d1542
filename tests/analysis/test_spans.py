"""Which forward and which layer an operation was launched for, by the ranges around its launch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.naming import Named, RangeNames, read_names
from traceview.analysis.spans import Placement, Span, innermost_range, outermost, place_by_names

if TYPE_CHECKING:
    from pathlib import Path

LOADER = 4799
OTHER_PROCESS = 99

Place = tuple[int, str, int]


def placed(builder: TraceBuilder, folder: Path) -> tuple[list[Span], dict[int, Place]]:
    """Return the forwards, and for each operation by its start: which forward, what it does there, which layer."""
    trace = read_back(builder, folder)
    spans, found = place_by_names(trace, read_names(trace, RangeNames()))
    columns = (found.span.tolist(), found.meaning.tolist(), found.layer.tolist())
    places = [(span, Named(meaning).name, layer) for span, meaning, layer in zip(*columns, strict=True)]
    return spans, dict(zip(trace.operations.start.tolist(), places, strict=True))


def two_forwards() -> TraceBuilder:
    return TraceBuilder().range("forward 0", 100, 200).range("forward 1", 300, 400)


def test_forwards_stand_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 8", 300, 400).range("forward 7", 100, 200, thread=LOADER)
    builder.api("cudaMalloc_v3020", 10, 20)
    spans, _ = placed(builder, tmp_path)
    assert [(span.name, span.start, span.end) for span in spans] == [("forward 7", 100, 200), ("forward 8", 300, 400)]
    assert spans[0].thread != spans[1].thread


def test_an_operation_belongs_where_its_launch_began(tmp_path: Path) -> None:
    """Its own time on the device says nothing, nor does the end of the launch."""
    builder = two_forwards().kernel(1000, 1001, call=(99, 100)).kernel(1010, 1011, call=(100, 101))
    builder.kernel(1020, 1021, call=(199, 210)).kernel(1030, 1031, call=(200, 201)).kernel(1040, 1041, call=(350, 351))
    _, places = placed(builder, tmp_path)
    assert [places[start][0] for start in (1000, 1010, 1020, 1030, 1040)] == [-1, 0, 0, -1, 1]


def test_an_operation_without_a_launch_belongs_nowhere(tmp_path: Path) -> None:
    _, places = placed(two_forwards().kernel(150, 160).kernel(170, 180, call=(110, 111)), tmp_path)
    assert places == {150: (-1, "NOTHING", -1), 170: (0, "NOTHING", -1)}


def test_of_nested_forwards_the_outermost_counts(tmp_path: Path) -> None:
    builder = two_forwards().range("forward 2", 120, 180).kernel(500, 510, call=(150, 151))
    spans, places = placed(builder, tmp_path)
    assert [span.name for span in spans] == ["forward 0", "forward 1"]
    assert places[500][0] == 0


def test_of_nested_layers_the_innermost_counts(tmp_path: Path) -> None:
    builder = two_forwards().range("compute layer 3", 110, 190).range("load layer 4", 130, 150)
    builder.copy(500, 510, call=(140, 141)).kernel(520, 530, call=(150, 151)).kernel(540, 550, call=(190, 191))
    _, places = placed(builder, tmp_path)
    assert places == {500: (0, "LOAD", 4), 520: (0, "COMPUTE", 3), 540: (0, "NOTHING", -1)}


def test_a_range_holds_launches_of_its_own_thread_alone(tmp_path: Path) -> None:
    builder = two_forwards().range("compute layer 3", 110, 190).kernel(500, 510, call=(150, 151), thread=LOADER)
    _, places = placed(builder, tmp_path)
    assert places[500] == (-1, "NOTHING", -1)


# layers of other threads


def test_a_load_of_another_thread_belongs_to_the_forward_that_it_began_in(tmp_path: Path) -> None:
    """Layer 2 is submitted at 205, when its forward has ended."""
    builder = two_forwards()
    for layer, opened in enumerate((50, 100, 190, 210, 300)):
        builder.range(f"load layer {layer}", opened, opened + 20, thread=LOADER)
        builder.copy(1000 + layer, 1001 + layer, call=(opened + 15, opened + 16), thread=LOADER)
    _, places = placed(builder, tmp_path)
    assert [places[1000 + layer] for layer in range(5)] == [
        (-1, "LOAD", 0),
        (0, "LOAD", 1),
        (0, "LOAD", 2),
        (-1, "LOAD", 3),
        (1, "LOAD", 4),
    ]


def test_a_load_belongs_to_the_forward_that_waits_for_it(tmp_path: Path) -> None:
    """The loader reads ahead: it submits while the first forward runs what the second one waits for."""
    builder = two_forwards().range("load layer 0", 120, 140, thread=LOADER)
    builder.copy(500, 510, call=(125, 126), thread=LOADER)
    builder.record(1, stream=13, call=(150, 151), sync=1, thread=LOADER)
    builder.wait(1, stream=7, call=(310, 311), sync=1)
    _, places = placed(builder, tmp_path)
    assert places[500] == (1, "LOAD", 0)


def test_of_several_waits_for_a_load_the_first_counts(tmp_path: Path) -> None:
    builder = two_forwards().range("load layer 0", 20, 40, thread=LOADER)
    builder.copy(500, 510, call=(25, 26), thread=LOADER)
    builder.record(1, stream=13, call=(50, 51), sync=1, thread=LOADER)
    builder.wait(1, stream=7, call=(110, 111), sync=1).wait(1, stream=7, call=(310, 311), sync=1)
    _, places = placed(builder, tmp_path)
    assert places[500] == (0, "LOAD", 0)


def test_a_record_before_the_load_is_not_of_it(tmp_path: Path) -> None:
    builder = two_forwards().range("load layer 0", 120, 140, thread=LOADER)
    builder.record(1, stream=13, call=(122, 123), sync=1, thread=LOADER)
    builder.copy(500, 510, call=(125, 126), thread=LOADER)
    builder.wait(1, stream=7, call=(310, 311), sync=1)
    _, places = placed(builder, tmp_path)
    assert places[500] == (0, "LOAD", 0)


def test_another_processs_load_belongs_to_no_forward_of_this_one(tmp_path: Path) -> None:
    builder = two_forwards().range("load layer 0", 120, 140, process=OTHER_PROCESS)
    builder.copy(500, 510, call=(125, 126), process=OTHER_PROCESS)
    _, places = placed(builder, tmp_path)
    assert places[500] == (-1, "LOAD", 0)


# ranges by themselves


@pytest.mark.parametrize(
    ("ranges", "kept"),
    [
        ([(0, 10), (2, 8), (3, 5)], [(0, 10)]),
        ([(0, 10), (5, 15)], [(0, 10), (5, 15)]),
        ([(0, 10), (10, 12)], [(0, 10), (10, 12)]),
        ([(0, 10), (0, 10)], [(0, 10)]),
        ([(0, 10), (2, 4), (6, 10)], [(0, 10)]),
    ],
    ids=["nested", "overlapping", "touching", "equal", "two in one"],
)
def test_what_lies_in_no_other_is_outermost(
    ranges: list[tuple[int, int]], kept: list[tuple[int, int]], tmp_path: Path
) -> None:
    builder = TraceBuilder().range("elsewhere", -5, 50, thread=LOADER).api("cudaMalloc_v3020", 10, 20)
    for start, end in ranges:
        builder.range("forward", start, end)
    table = read_back(builder, tmp_path).ranges
    found = outermost(table, np.flatnonzero(table.start >= 0))
    assert list(zip(table.start[found].tolist(), table.end[found].tolist(), strict=True)) == kept


def test_a_call_that_is_none_lies_in_no_range(tmp_path: Path) -> None:
    builder = two_forwards().api("cudaMalloc_v3020", 150, 160).api("cudaFree_v3020", 250, 260)
    trace = read_back(builder, tmp_path)
    assert innermost_range(trace, np.array([0, 1]), np.array([1, -1, 0])).tolist() == [-1, -1, 0]
    assert innermost_range(trace, np.array([1]), np.array([0])).tolist() == [-1]


def test_nowhere_is_no_forward_no_layer_and_no_range() -> None:
    nowhere = Placement.nowhere(2)
    assert {name: column.tolist() for name, column in vars(nowhere).items()} == {
        "span": [-1, -1],
        "meaning": [int(Named.NOTHING)] * 2,
        "layer": [-1, -1],
        "range": [-1, -1],
    }
