"""Odd traces and wrong usage that once gave a wrong number, a traceback or a hang."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.events import pair_waits
from traceview.analysis.forwards import find_forwards
from traceview.analysis.overlap import stream_labels
from traceview.analysis.report import ReportOptions, build_report
from traceview.errors import OutputError
from traceview.model import Stream
from traceview.nsys.schema import documented_name
from traceview.output import check_output, write_whole

SAMPLE = Path(__file__).parents[1] / "sample_traces" / "item.sqlite"


def command(*arguments: str, redirect: str = "") -> subprocess.CompletedProcess[str]:
    line = f'"$0" -m traceview "$@" {redirect}'
    return subprocess.run(
        ["bash", "-c", line, sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60
    )


def test_a_load_that_no_layer_computes_with_leaves_the_ideal_alone(tmp_path: Path) -> None:
    builder = layered_forward(TraceBuilder(), start=0, loads=[[(100, 200)], [(200, 1200)]], computes=[[(210, 250)]])
    measures = build_report(read_back(builder, tmp_path)).forwards[0].measures
    assert (measures.makespan_ns, measures.ideal_ns) == (150, 140)


def test_loads_beside_each_other_count_once(tmp_path: Path) -> None:
    times = {"loads": [[(1000, 5000)]] * 2, "computes": [[(5100, 5600)], [(5700, 6200)]]}
    measures = build_report(read_back(layered_forward(TraceBuilder(), start=0, **times), tmp_path)).forwards[0].measures
    assert measures.ideal_ns == 5000
    assert measures.pipeline_efficiency is not None
    assert measures.pipeline_efficiency <= 1


def test_a_wait_in_another_context_pairs_by_the_shared_id(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(50, 60, call=(40, 41))
    builder.record(1, stream=13, call=(10, 11), sync=5, context=1).wait(1, stream=7, call=(14, 15), sync=5, context=2)
    assert pair_waits(read_back(builder, tmp_path)).tolist() == [0]


def test_a_row_without_the_shared_id_pairs_by_its_event(tmp_path: Path) -> None:
    builder = TraceBuilder().kernel(50, 60, call=(40, 41))
    builder.record(1, stream=13, call=(10, 11)).record(2, stream=14, call=(12, 13)).wait(1, stream=7, call=(14, 15))
    builder.record(3, stream=13, call=(16, 17), sync=5).wait(3, stream=7, call=(18, 19), sync=5)
    trace = read_back(builder, tmp_path)
    events = [int(trace.event_records.event[row]) for row in pair_waits(trace)]
    assert events == [1, 3]


def test_labels_of_many_streams_take_no_time(tmp_path: Path) -> None:
    trace = read_back(TraceBuilder().kernel(1, 2), tmp_path)
    streams = tuple(Stream(process, 0, 1, 0, 7) for process in range(20_000))
    began = time.process_time()
    labels = stream_labels(replace(trace, streams=(*streams, Stream(5, 0, 2, 0, 7))))
    assert time.process_time() - began < 2
    assert (labels[4], labels[5], labels[-1]) == ("4/0/7", "5/0/1.0/7", "5/0/2.0/7")


@pytest.mark.parametrize("name", ["cudaStreamSynchronize_ptsz_v7000", "cudaStreamSynchronize_v7000_ptsz"])
def test_suffixes_come_in_any_order(name: str) -> None:
    assert documented_name(name) == "cudaStreamSynchronize"


@pytest.mark.parametrize(("name", "warmup"), [("forward -1", True), ("forward_-1", True), ("forward-1", False)])
def test_a_hyphen_is_no_minus(name: str, warmup: bool, tmp_path: Path) -> None:
    builder = TraceBuilder()
    for start, text in ((0, name), (1000, "forward 5"), (2000, "forward -7")):
        builder.range(text, start, start + 500).kernel(start + 200, start + 300, call=(start + 10, start + 20))
    assert find_forwards(read_back(builder, tmp_path))[0].warmup is warmup


@pytest.mark.parametrize("odd", ["zero-length call", "kernel before its launch"])
def test_a_replay_bears_odd_times(odd: str, tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 500)
    builder.kernel(100, 200, call=(50, 60)).kernel(210, 300, call=(130, 140))
    if odd == "zero-length call":
        builder.api("cudaGetDevice", 70, 70)
    else:
        builder.kernel(350, 360, call=(350, 370))
    [found] = build_report(read_back(builder, tmp_path), ReportOptions(what_if=("no-sync",))).what_if
    assert found.predicted_ns == found.makespan_ns


def test_a_device_is_not_replaced_and_a_link_keeps_its_target(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OutputError, match="no regular file"):
        check_output(fifo, force=True, inputs=[])
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--forward-range", "a{99999999999999999999}"),
        ("--load-range", "(" * 3000 + ")" * 3000),
        ("--threshold", "min_share=nan"),
        ("--link-gbps", "nan"),
        ("-o", "x" * 300),
    ],
    ids=lambda arguments: arguments[0],
)
def test_wrong_usage_is_one_line(arguments: tuple[str, ...]) -> None:
    done = command("report", str(SAMPLE), *arguments)
    assert done.returncode in (1, 2)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("redirect", "status"), [(">&-", 0), ("2>&-", 0), (">/dev/full", 1)])
def test_streams_may_be_closed_or_full(redirect: str, status: int) -> None:
    done = command("report", str(SAMPLE), redirect=redirect)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
