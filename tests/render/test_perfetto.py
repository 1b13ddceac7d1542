"""The Perfetto export, read back with Perfetto's own protobuf classes.

The rules that a trace processor holds a trace to (slices that nest, names known before they are used, flows with two
ends) are checked here without one; test_perfetto_reader.py asks the trace processor itself.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from drawn_scenes import eight_layers, hostile_names
from hypothesis import given
from hypothesis import strategies as st
from trace_builder import TraceBuilder

from traceview.analysis.export_tables import export_tables
from traceview.analysis.report import ReportOptions, build_report
from traceview.reading import read
from traceview.render.perfetto import as_perfetto
from traceview.render.perfetto_tracks import lanes, nested
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from pathlib import Path

pb2 = pytest.importorskip(
    "perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="needs perfetto: pip install 'traceview[test]'"
)


class Parsed:
    """What a reader of the trace sees: tracks by uuid, and slices with names, times and flows."""

    def __init__(self, content: bytes) -> None:
        parsed = pb2.Trace()
        parsed.ParseFromString(content)
        self.tracks: dict[int, Any] = {}
        self.slices: list[dict[str, Any]] = []
        self._open: dict[int, list[dict[str, Any]]] = defaultdict(list)
        self._names: dict[str, dict[int, str]] = defaultdict(dict)
        for packet in parsed.packet:
            if packet.HasField("track_descriptor"):
                assert packet.track_descriptor.uuid not in self.tracks
                self.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if packet.HasField("track_event"):
                self._intern(packet.interned_data)
                self._event(packet)
        assert not any(self._open.values())

    def _intern(self, data: Any) -> None:
        for kind in ("event_names", "event_categories", "debug_annotation_names"):
            for entry in getattr(data, kind):
                assert entry.iid not in self._names[kind]
                self._names[kind][entry.iid] = entry.name

    def _event(self, packet: Any) -> None:
        event, stack = packet.track_event, self._open[packet.track_event.track_uuid]
        assert event.track_uuid in self.tracks
        if event.type == pb2.TrackEvent.TYPE_SLICE_END:
            ended = stack.pop()
            ended["end"] = packet.timestamp
            assert ended["end"] >= ended["start"]
            assert not stack or stack[-1]["start"] <= ended["start"]
            return
        about = {}
        for one in event.debug_annotations:
            about[self._names["debug_annotation_names"][one.name_iid]] = getattr(one, one.WhichOneof("value"))
        made = {
            "track": event.track_uuid,
            "name": self._names["event_names"][event.name_iid],
            "category": self._names["event_categories"][event.category_iids[0]],
            "start": packet.timestamp,
            "leaves": list(event.flow_ids),
            "reaches": list(event.terminating_flow_ids),
            "about": about,
        }
        stack.append(made)
        self.slices.append(made)

    def path(self, slice_: dict[str, Any]) -> list[str]:
        """Return the names of a slice's tracks, the outermost first."""
        names, uuid = [], slice_["track"]
        while uuid:
            track = self.tracks[uuid]
            names.insert(0, track.name or track.process.process_name)
            uuid = track.parent_uuid
        return names


def exported(path: Path) -> tuple[Any, Parsed]:
    trace = read(path)
    tables = export_tables(trace, ReportOptions().forwards, build_report(trace))
    return trace, Parsed(as_perfetto(trace, tables))


def test_every_operation_call_and_range_is_a_slice_of_the_same_time(tmp_path: Path) -> None:
    trace, parsed = exported(eight_layers(tmp_path / "eight.sqlite"))
    for category, table in (("gpu", trace.operations), ("api", trace.calls), ("nvtx", trace.ranges)):
        found = sorted((one["start"], one["end"]) for one in parsed.slices if one["category"] == category)
        assert found == sorted(zip(table.start.tolist(), table.end.tolist(), strict=True)), category


def test_holes_sum_up_to_the_accounting(tmp_path: Path) -> None:
    path = eight_layers(tmp_path / "eight.sqlite")
    trace, parsed = exported(path)
    spent: dict[str, int] = defaultdict(int)
    for one in parsed.slices:
        if one["category"] == "hole":
            spent[one["name"]] += one["end"] - one["start"]
    made = build_report(trace)
    for name in CATEGORIES[1:]:
        assert spent[name] == sum(forward.measures.accounting[name] for forward in made.forwards)
    host = next(one for one in parsed.slices if one["category"] == "hole" and one["name"] == "host")
    assert host["about"]["waits for"].startswith("compute layer")
    forwards = [one for one in parsed.slices if one["category"] == "forward"]
    assert [one["end"] - one["start"] for one in forwards] == [one.measures.makespan_ns for one in made.forwards]


def test_arrows_lead_from_each_launch_to_its_operation_and_from_each_record_to_its_wait(tmp_path: Path) -> None:
    trace, parsed = exported(eight_layers(tmp_path / "eight.sqlite"))
    leaves = {flow: one for one in parsed.slices for flow in one["leaves"]}
    reaches = {flow: one for one in parsed.slices for flow in one["reaches"]}
    assert set(leaves) == set(reaches)
    pairs = {(leaves[flow]["name"], reaches[flow]["category"]) for flow in leaves}
    assert pairs == {
        ("cudaMemcpyAsync", "gpu"),
        ("cudaLaunchKernel", "gpu"),
        ("cudaEventRecord", "api"),
    }
    waits = [reaches[flow]["name"] for flow in leaves if leaves[flow]["name"] == "cudaEventRecord"]
    assert waits == ["cudaStreamWaitEvent"] * 24
    launched = [flow for flow in leaves if reaches[flow]["category"] == "gpu"]
    assert len(launched) == len(trace.operations)
    assert all(leaves[flow]["start"] <= reaches[flow]["start"] for flow in leaves)


def test_tracks_are_named_by_process_gpu_stream_and_thread(tmp_path: Path) -> None:
    _, parsed = exported(eight_layers(tmp_path / "eight.sqlite"))
    paths = {one["category"]: parsed.path(one) for one in parsed.slices}
    assert paths["api"] == ["process 4711", "host thread 4711", "API calls"]
    assert paths["nvtx"] == ["process 4711", "host thread 4711", "NVTX ranges"]
    assert paths["gpu"][:2] == ["process 4711", "GPU 0"]
    assert paths["gpu"][2].startswith("stream ")
    assert paths["hole"] == ["process 4711", "GPU 0", "holes"]


def test_names_are_one_harmless_line(tmp_path: Path) -> None:
    _, parsed = exported(hostile_names(tmp_path / "hostile.sqlite"))
    assert all(one["name"].isprintable() and len(one["name"]) <= 300 for one in parsed.slices)
    assert any("<img src=x onerror=alert(1)>" in one["name"] for one in parsed.slices)


def test_a_trace_with_times_below_zero_begins_at_zero(tmp_path: Path) -> None:
    path = (
        TraceBuilder().kernel(-500, -400, call=(-900, -800)).kernel(100, 200, call=(0, 50)).write(tmp_path / "n.sqlite")
    )
    trace, parsed = exported(path)
    assert trace.start_ns == -900
    assert min(one["start"] for one in parsed.slices) == 0
    kernels = [(one["start"], one["end"]) for one in parsed.slices if one["category"] == "gpu"]
    assert kernels == [(400, 500), (1_000, 1_100)]


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 12)), max_size=25))
def test_lanes_hold_every_interval_once_and_nest(intervals: list[tuple[int, int]]) -> None:
    start = np.array([begin for begin, _ in intervals], dtype=np.int64)
    end = np.array([begin + length for begin, length in intervals], dtype=np.int64)
    found = lanes(start, end)
    assert sorted(row for lane in found for row in lane.tolist()) == list(range(len(intervals)))
    for lane in found:
        open_: list[int] = []
        now = -1
        for row, begins in nested(start, end, lane):
            moment = int(start[row] if begins else end[row])
            assert moment >= now
            now = moment
            if begins:
                open_.append(row)
            else:
                assert open_.pop() == row
        assert open_ == []
