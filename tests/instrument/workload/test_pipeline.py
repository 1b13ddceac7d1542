"""In which order a forward submits its work, with stand-ins for streams and events that keep a log."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from instrument.workload.faults import Around, busy_pause  # noqa: E402
from instrument.workload.pipeline import Pipeline, run_forward  # noqa: E402
from instrument.workload.plan import Shape  # noqa: E402
from instrument.workload.range_set import RangeSet, no_ranges  # noqa: E402
from instrument.workload.timing import Marks, forward_times  # noqa: E402

pytestmark = pytest.mark.torch
LAYERS = 3


@dataclass
class Event:
    name: str
    log: list[str]

    def record(self, stream: Stream) -> None:
        self.log.append(f"{stream.name} records {self.name}")


@dataclass
class Stream:
    name: str
    log: list[str] = field(repr=False)

    def wait_event(self, event: Event) -> None:
        self.log.append(f"{self.name} waits for {event.name}")

    def wait_stream(self, other: Stream) -> None:
        self.log.append(f"{self.name} waits for stream {other.name}")

    def synchronize(self) -> None:
        self.log.append(f"host waits for {self.name}")


@pytest.fixture
def log(monkeypatch) -> list[str]:
    monkeypatch.setattr(torch.cuda, "stream", lambda _stream: nullcontext())
    return []


def pipeline(log: list[str], **changes: Any) -> Pipeline:
    names = ("load start", "load end", "compute start", "compute end")
    marks = Marks(*[[Event(f"{name} {layer}", log) for layer in range(LAYERS)] for name in names])
    return Pipeline(
        **{
            "shape": Shape(layers=LAYERS, layer_bytes=1024),
            "ranges": no_ranges(),
            "buffers": [],
            "marks": marks,
            "load_stream": Stream("L", log),
            "compute_stream": Stream("C", log),
            "submit": lambda layer: log.append(f"load {layer}"),
            "launch": lambda layer: log.append(f"compute {layer}"),
            "around": Around(),
            **changes,
        }
    )


def test_loads_go_ahead_and_each_compute_waits_for_its_own(log) -> None:
    run_forward(pipeline(log), 0)
    loads = [(f"L records load start {i}", f"load {i}", f"L records load end {i}") for i in range(LAYERS)]
    computes = [
        [f"C waits for load end {i}", f"C records compute start {i}", f"compute {i}", f"C records compute end {i}"]
        for i in range(LAYERS)
    ]
    assert log == ["L waits for stream C", *chain(*loads), *chain(*computes), "host waits for C"]


def test_a_fault_lies_around_the_kernels_of_each_layer(log) -> None:
    around = Around(before=lambda: log.append("before"), after=lambda: log.append("after"))
    run_forward(pipeline(log, around=around), 0)
    start = log.index("C waits for load end 1")
    assert log[start : start + 6] == [
        "C waits for load end 1",
        "before",
        "C records compute start 1",
        "compute 1",
        "C records compute end 1",
        "after",
    ]


def test_on_one_stream_nothing_waits_for_itself(log) -> None:
    only = Stream("C", log)
    run_forward(pipeline(log, load_stream=only, compute_stream=only), 0)
    assert not [entry for entry in log if "waits for stream" in entry]


def test_host_work_lies_between_the_layers(log) -> None:
    run_forward(pipeline(log, pause=lambda: log.append("pause")), 0)
    assert log[1:5] == ["L records load start 0", "load 0", "L records load end 0", "pause"]
    assert log.count("pause") == LAYERS - 1


def test_a_loader_thread_records_before_the_compute_waits(log) -> None:
    with ThreadPoolExecutor(1) as loader:
        run_forward(pipeline(log, loader=loader), 0)
    for layer in range(LAYERS):
        assert log.index(f"L records load end {layer}") < log.index(f"C waits for load end {layer}")
    assert log[-1] == "host waits for C"


def test_a_loader_thread_that_fails_ends_the_forward(log) -> None:
    def submit(layer: int) -> None:
        if layer == 1:
            raise RuntimeError("no more")

    with ThreadPoolExecutor(1) as loader, pytest.raises(RuntimeError, match="no more"):
        run_forward(pipeline(log, loader=loader, submit=submit), 0)


def test_partners_join_in(log) -> None:
    writeback = SimpleNamespace(
        stream=Stream("W", log), submit=lambda layer, event: log.append(f"write back {layer} after {event.name}")
    )
    inbound = SimpleNamespace(submit=lambda: log.append("peer copies"))
    storage = SimpleNamespace(before_load=lambda layer: log.append(f"read {layer}"))
    run_forward(pipeline(log, writeback=writeback, inbound=inbound, storage=storage), 0)
    assert log[:4] == ["L waits for stream C", "L waits for stream W", "peer copies", "read 0"]
    assert log.index("read 2") < log.index("load 2")
    assert log.index("C records compute end 2") < log.index("write back 2 after compute end 2")


def test_ranges_carry_numbers_layers_and_bytes(log) -> None:
    @contextmanager
    def noted(*what: object):
        log.append(f"open {what}")
        yield
        log.append(f"close {what}")

    ranges = RangeSet(
        forward=lambda number: noted("forward", number),
        load=lambda layer, n_bytes: noted("load", layer, n_bytes),
        compute=lambda layer, n_bytes: noted("compute", layer, n_bytes),
        storage_read=noted,
        stage=noted,
    )
    run_forward(replace(pipeline(log), ranges=ranges), -2)
    assert (log[0], log[-1], log[-2]) == ("open ('forward', -2)", "close ('forward', -2)", "host waits for C")
    assert log.index("open ('load', 2, 1024)") < log.index("load 2") < log.index("close ('load', 2, 1024)")
    assert log.index("open ('compute', 2, 1024)") < log.index("compute 2") < log.index("close ('compute', 2, 1024)")


def test_times_come_from_the_stamps_of_a_forward() -> None:
    times = forward_times(4, 600, [[0, 100, 210], [100, 200, 300], [110, 240, 400], [230, 390, 520]])
    assert (times.number, times.makespan_ns, times.first_layer_exposed_ns, times.load_span_ns) == (4, 520, 110, 300)
    assert (times.load_busy_ns, times.load_span_bytes_per_s) == (290, 2_000_000_000)
    assert times.load_bytes_per_s == round(600e9 / 290)
    assert [(layer.load_ns, layer.compute_ns) for layer in times.layers] == [(100, 120), (100, 150), (90, 120)]


def test_a_busy_pause_lasts_as_long_as_asked() -> None:
    import time

    begin = time.perf_counter_ns()
    busy_pause(2000)()
    assert time.perf_counter_ns() - begin >= 2_000_000


class NotedGate:
    """Notes when it holds a stream."""

    def __init__(self, log) -> None:
        self.log = log

    @contextmanager
    def held(self, stream: Stream):
        self.log.append(f"{stream.name} held")
        yield
        self.log.append(f"{stream.name} free")


def test_the_first_load_starts_only_when_it_is_submitted(log) -> None:
    run_forward(pipeline(log, load_gate=NotedGate(log)), 0)
    assert log[1:6] == ["L held", "L records load start 0", "load 0", "L free", "L records load end 0"]
    assert log.count("L held") == 1


def test_the_first_compute_starts_only_when_it_is_submitted(log) -> None:
    run_forward(pipeline(log, compute_gate=NotedGate(log)), 0)
    held = log.index("C held")
    assert log[held : held + 4] == ["C held", "C records compute start 0", "compute 0", "C free"]
    assert log.count("C held") == 1
