"""Which forwards a trace has: by device, warm-up or not, selected or not, told or untold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.forwards import ForwardOptions, find_forwards
from traceview.analysis.roles import Role
from traceview.errors import SelectionError

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.analysis.forwards import Forward

OTHER_PROCESS = 99


def forwards(builder: TraceBuilder, folder: Path, **options: object) -> tuple[Forward, ...]:
    return find_forwards(read_back(builder, folder), ForwardOptions(**options))  # type: ignore[arg-type]


def passes(*names: str, process: int | None = None, builder: TraceBuilder | None = None) -> TraceBuilder:
    """Write one forward of each name, 1000 ns apart, each with one kernel."""
    builder = builder or TraceBuilder()
    for at, name in enumerate(names):
        builder.range(name, 1000 * at, 1000 * at + 500, process=process)
        builder.kernel(1000 * at + 100, 1000 * at + 200, call=(1000 * at + 10, 1000 * at + 20), process=process)
    return builder


def warmups(builder: TraceBuilder, folder: Path, **options: object) -> list[bool]:
    return [forward.warmup for forward in forwards(builder, folder, **options)]


def test_a_trace_without_forwards_has_none(tmp_path: Path) -> None:
    assert forwards(TraceBuilder().kernel(1, 2, call=(0, 1)), tmp_path) == ()


def test_a_forward_tells_its_range_its_place_and_its_layers(tmp_path: Path) -> None:
    loads, computes = [[(100, 110), (110, 120)], [(120, 130)]], [[(120, 140)], [(140, 150), (150, 160)]]
    (forward,) = forwards(layered_forward(TraceBuilder(), start=5, loads=loads, computes=computes), tmp_path)
    assert (forward.name, forward.index, forward.process, forward.device) == ("forward 0", 0, 4711, 0)
    assert (forward.start, forward.end, forward.layers_from, forward.warmup) == (5, 85, "nvtx", False)
    assert forward.layers == [0, 1]
    # rows by start, then end: loads at 100, 110, 120, then compute at 120, 140, 150
    assert forward.rows(Role.LOAD).tolist() == [0, 1, 2]
    assert forward.layer_rows(0, Role.LOAD).tolist() == [0, 1]
    assert forward.layer_rows(1, Role.COMPUTE).tolist() == [4, 5]
    assert forward.layer_rows(2, Role.COMPUTE).tolist() == []


def test_the_ranges_that_name_a_layers_load_are_known(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=5, loads=[[(100, 110)], []], computes=[[(120, 140)], [(140, 150)]])
    trace = read_back(builder, tmp_path)
    (forward,) = find_forwards(trace)
    rows, ranges = forward.loads_of(0)
    assert (rows.tolist(), [trace.names[name] for name in trace.ranges.name[ranges]]) == ([0], ["load layer 0"])
    assert [part.tolist() for part in forward.loads_of(1)] == [[], []]


def test_layers_of_a_forward_without_names_are_none(tmp_path: Path) -> None:
    (forward,) = forwards(passes("forward"), tmp_path)
    assert (forward.layers, forward.layers_from) == ([], None)


def test_each_device_that_computes_has_an_entry(tmp_path: Path) -> None:
    builder = passes("forward 0", "forward 1").kernel(120, 130, device=1, context=2, call=(30, 31))
    builder.copy(1120, 1130, device=1, context=2, stream=13, call=(1030, 1031))
    found = [(forward.index, forward.device, len(forward.operations)) for forward in forwards(builder, tmp_path)]
    assert found == [(0, 0, 1), (0, 1, 1), (1, 0, 1)]


def test_a_forward_that_computes_nothing_keeps_its_number(tmp_path: Path) -> None:
    builder = passes("forward 0", "forward 1").range("forward 2", 2000, 2500).copy(2100, 2200, call=(2010, 2020))
    passes_later = builder.range("forward 3", 3000, 3500).kernel(3100, 3200, call=(3010, 3020))
    assert [forward.index for forward in forwards(passes_later, tmp_path)] == [0, 1, 3]


# warm-up


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["forward 0"], [False]),
        (["forward 0", "forward 1", "forward 2"], [True, False, False]),
        (["forward -2", "forward -1", "forward 0"], [True, True, False]),
        (["forward 0", "forward -1"], [False, True]),
        (["forward", "forward"], [True, False]),
    ],
    ids=["the only one", "the first", "those below 0", "below 0 wherever it stands", "without numbers"],
)
def test_warm_up_is_what_is_numbered_below_zero_else_the_first(
    names: list[str], expected: list[bool], tmp_path: Path
) -> None:
    assert warmups(passes(*names), tmp_path) == expected


@pytest.mark.parametrize(("warmup", "expected"), [(0, [False] * 3), (2, [True, True, False]), (9, [True] * 3)])
def test_a_given_number_of_warm_ups_overrides_their_names(warmup: int, expected: list[bool], tmp_path: Path) -> None:
    assert warmups(passes("forward -1", "forward 0", "forward 1"), tmp_path, warmup=warmup) == expected


def test_each_process_warms_up_for_itself(tmp_path: Path) -> None:
    builder = passes("forward 0", "forward 1")
    builder = passes("forward 0", "forward 1", process=OTHER_PROCESS, builder=builder)
    found = {(forward.process, forward.start): forward.warmup for forward in forwards(builder, tmp_path)}
    expected = {(process, start): start == 0 for process in (4711, OTHER_PROCESS) for start in (0, 1000)}
    assert found == expected


def test_a_forward_on_two_devices_is_one_warm_up(tmp_path: Path) -> None:
    builder = passes("forward 0", "forward 1").kernel(120, 130, device=1, context=2, call=(30, 31))
    assert warmups(builder, tmp_path) == [True, True, False]


# selection


@pytest.mark.parametrize(
    ("selected", "indices"),
    [((1, None), [1, 2]), ((None, 1), [0]), ((1, 2), [1]), ((-1, None), [2]), ((None, None), [0, 1, 2])],
)
def test_forwards_are_selected_by_index(
    selected: tuple[int | None, int | None], indices: list[int], tmp_path: Path
) -> None:
    found = forwards(passes("forward 5", "forward 6", "forward 7"), tmp_path, selected=selected)
    assert [forward.index for forward in found] == indices


def test_the_first_of_all_stays_the_warm_up_when_others_are_selected(tmp_path: Path) -> None:
    assert warmups(passes("forward 0", "forward 1", "forward 2"), tmp_path, selected=(1, None)) == [False, False]


def test_a_selection_of_nothing_tells_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="no forward lies in this selection") as raised:
        forwards(passes("forward 5", "forward 6"), tmp_path, selected=(7, 9))
    assert "0 (forward 5), 1 (forward 6)" in str(raised.value.hint)


def test_a_selection_from_no_forward_at_all_is_no_error(tmp_path: Path) -> None:
    assert forwards(TraceBuilder().kernel(1, 2, call=(0, 1)), tmp_path, selected=(0, 1)) == ()


# kernels that nobody is known to have launched


@pytest.mark.parametrize(("length", "kept"), [(5, 1), (6, 0)])
def test_a_forward_is_left_out_when_more_than_a_twentieth_of_it_runs_untold(
    length: int, kept: int, tmp_path: Path
) -> None:
    """The forward lasts from 100 to 200."""
    assert len(forwards(passes("forward 0").kernel(150, 150 + length, stream=9), tmp_path)) == kept


@pytest.mark.parametrize(
    "where", [{"device": 1}, {"process": OTHER_PROCESS}], ids=["another device", "another process"]
)
def test_what_runs_untold_elsewhere_is_no_reason(where: dict[str, int], tmp_path: Path) -> None:
    builder = passes("forward 0").kernel(110, 190, stream=9, **where)
    assert len(forwards(builder, tmp_path)) == 1


def test_what_runs_untold_outside_of_a_forward_is_no_reason(tmp_path: Path) -> None:
    assert len(forwards(passes("forward 0").kernel(10, 100, stream=9).kernel(200, 400, stream=9), tmp_path)) == 1
