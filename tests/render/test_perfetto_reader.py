"""The Perfetto export in Perfetto's own trace processor: no import error, and every slice, argument and arrow there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from drawn_scenes import eight_layers, hostile_names
from perfetto_reader import perfetto_reader
from trace_builder import TraceBuilder

from traceview.analysis.export_tables import export_tables
from traceview.analysis.report import ReportOptions, build_report
from traceview.reading import read
from traceview.render.perfetto import as_perfetto
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from perfetto_reader import Reader

    from traceview.model import Trace

SAMPLES = Path(__file__).parents[2] / "sample_traces"
_COUNT = "select category, count(*) from slice group by category"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    pytest.importorskip("perfetto", reason="needs perfetto: pip install 'traceview[test]'")
    with perfetto_reader(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def opened(reader: Reader, path: Path) -> Trace:
    """Export a trace and open it; the trace processor must have nothing to complain of."""
    trace = read(path)
    reader.open(as_perfetto(trace, export_tables(trace, ReportOptions().forwards, build_report(trace))))
    assert reader.ask("select name, idx, value from stats where value > 0 and severity <> 'info'") == []
    return trace


def side_by_side(path: Path) -> Path:
    """Write two processes on two GPUs, ranges and kernels that overlap without nesting, and times below zero."""
    builder = TraceBuilder()
    for process, device in ((11, 0), (12, 1)):
        placed: dict[str, Any] = {"process": process, "device": device}
        builder.kernel(-500, 300, call=(-900, -800), **placed).kernel(100, 600, call=(-700, -650), **placed)
        builder.copy(150, 150, call=(-600, -590), **placed)
        builder.range("first", -950, 200, process=process).range("second", 0, 400, process=process, eventType=60)
    return builder.write(path)


@pytest.mark.parametrize("scene", [eight_layers, hostile_names, side_by_side])
def test_every_slice_is_imported_with_its_times(reader: Reader, scene: Any, tmp_path: Path) -> None:
    trace = opened(reader, scene(tmp_path / "scene.sqlite"))
    shift = max(0, -trace.start_ns)
    for category, table in (("gpu", trace.operations), ("api", trace.calls), ("nvtx", trace.ranges)):
        found = reader.ask(f"select ts, dur from slice where category = '{category}' order by ts, dur")
        times = zip((table.start + shift).tolist(), (table.end - table.start).tolist(), strict=True)
        assert found == sorted(map(list, times)), category


def test_holes_sum_up_to_the_accounting(reader: Reader) -> None:
    trace = opened(reader, SAMPLES / "item.sqlite")
    made = build_report(trace)
    spent = dict(reader.ask("select name, sum(dur) from slice where category = 'hole' group by name"))
    for name in CATEGORIES[1:]:
        assert spent.get(name, 0) == sum(forward.measures.accounting[name] for forward in made.forwards)
    why = reader.ask(
        "select distinct args.display_value from slice join args using (arg_set_id) "
        "where category = 'hole' and slice.name = 'host' and args.key = 'debug.waits for'"
    )
    assert ["compute layer 0"] in why


def test_arrows_lead_from_launch_to_operation_and_from_record_to_wait(reader: Reader) -> None:
    trace = opened(reader, SAMPLES / "healthy.sqlite")
    arrows = reader.ask(
        "select source.category, source.name, target.category, target.name = source.name, count(*), "
        "min(target.ts - source.ts) >= 0 "
        "from flow join slice source on source.id = slice_out join slice target on target.id = slice_in "
        "group by 1, 2, 3, 4"
    )
    to_work = sum(row[4] for row in arrows if row[2] == "gpu")
    assert to_work == int((trace.operations.launch >= 0).sum())
    assert {row[1] for row in arrows if row[2] == "api"} == {"cudaEventRecordWithFlags"}
    assert all(row[0] == "api" and row[5] == 1 for row in arrows)
    assert dict(reader.ask(_COUNT))["forward"] == len(build_report(trace).forwards)


def test_tracks_lie_below_their_gpu_and_thread(reader: Reader) -> None:
    opened(reader, SAMPLES / "inbound_peer.sqlite")
    paths = reader.ask(
        "select distinct parent.name, track.name from slice join track on track.id = track_id "
        "join track parent on parent.id = track.parent_id"
    )
    assert {(parent.split()[0], name.split()[0]) for parent, name in paths} == {
        ("GPU", "stream"), ("GPU", "forwards"), ("GPU", "holes"), ("host", "API"), ("host", "NVTX"),
    }  # fmt: skip
