"""What is computed in a short way comes out as it does in the long one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_trace import read_back
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview import intervals
from traceview.analysis import lanes
from traceview.analysis.forwards import find_forwards
from traceview.analysis.layer_times import LayerTimes
from traceview.analysis.replay import Operation
from traceview.analysis.replay_waits import ended_by_stream
from traceview.analysis.roles import Role
from traceview.model import Trace

SAMPLES = sorted((Path(__file__).parents[2] / "sample_traces").glob("*.sqlite"))
OVERLAPPING = [[(20, 60), (30, 90)], [(40, 70)]], [[(100, 130), (120, 150)], [(90, 110), (140, 160)]]


@pytest.mark.parametrize("skew", [0.0, 0.9, 1.0])
def test_the_median_of_many_is_that_of_all_sorted(skew: float, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(7)
    values = generator.integers(0, 50, 5_000).astype(np.float64)
    weights = generator.integers(1, 1000, 5_000).astype(np.float64)
    weights[values < 25] *= 1 - skew
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    monkeypatch.setattr(lanes, "_MANY", 100)
    monkeypatch.setattr(lanes, "_SAMPLE", 50)
    expected = values[order[np.searchsorted(reached, reached[-1] / 2)]]
    assert lanes._weighted_median(values, weights) == expected


def check_layers(trace: Trace) -> None:
    """Compare each forward's layers with unions made one by one."""
    for forward in find_forwards(trace):
        times = LayerTimes(trace, forward)
        for role in (Role.LOAD, Role.COMPUTE):
            seen, length = np.empty((0, 2), dtype=np.int64), 0
            for layer, added in zip(forward.layers, times.added_ns(forward.layers, role), strict=True):
                rows = forward.operations[(forward.layer == layer) & (forward.role == role)]
                own = np.stack((trace.operations.start[rows], trace.operations.end[rows]), axis=1)
                seen = np.concatenate((seen, own))
                assert times.busy_ns(layer, role) == intervals.union(*own.T).length
                assert added == intervals.union(*seen.T).length - length
                length += added


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_layers_measured_together_are_those_measured_alone(path: Path) -> None:
    check_layers(traceview.read(path))


def test_layers_that_run_beside_each_other_are_measured_alike(tmp_path: Path) -> None:
    loads, computes = OVERLAPPING
    trace = read_back(layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes), tmp_path)
    assert find_forwards(trace)
    check_layers(trace)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.integers(1, 9)), max_size=12), st.booleans())
def test_what_a_call_waits_for_ended_last_of_what_was_launched_before_it(
    drawn: list[tuple[int, int, int]], in_turn: bool
) -> None:
    if in_turn:
        ends = sorted(start + duration for _, start, duration in drawn)
        drawn = [(launch, 0, end) for (launch, *_), end in zip(sorted(drawn), ends, strict=True)]
    nodes = {
        row: Operation(row, start, duration, launch, Role.COMPUTE, 0, 7, after=[])
        for row, (launch, start, duration) in enumerate(drawn)
    }
    streams = ended_by_stream(nodes)
    for call in range(11):
        for until in range(32):
            ended = [one for one in nodes.values() if one.launch < call and one.start + one.duration <= until]
            last = max(ended, key=lambda one: (one.start + one.duration, -one.launch, -one.row), default=None)
            found = streams[7].latest(call, until) if streams else None
            assert (found and found[1][1]) == (last and last.row)
