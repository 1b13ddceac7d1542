"""Layers and forwards that only events tell of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.forwards import Forward, ForwardOptions, find_forwards
from traceview.analysis.roles import Role
from traceview.model import Trace

LOAD, COMPUTE, WRITEBACK = 13, 7, 21
KIB = 1 << 10


class Engine:
    """Writes what a serving engine does, call by call; the device follows each launch after one step."""

    def __init__(self) -> None:
        self.builder = TraceBuilder()
        self.now = 0
        self.device = 0
        self.event = 0

    def _call(self) -> tuple[int, int]:
        self.now += 10
        return self.now, self.now + 5

    def _work(self, length: int) -> tuple[int, int]:
        self.device = max(self.device, self.now + 10)
        begin, self.device = self.device, self.device + length
        return begin, self.device

    def kernel(self, name: str = "layer", stream: int = COMPUTE) -> None:
        call = self._call()
        self.builder.kernel(*self._work(20), name=name, stream=stream, call=call)

    def copy(self, direction: str = "h2d", stream: int = LOAD, n_bytes: int = 64 * KIB) -> None:
        call = self._call()
        self.builder.copy(*self._work(20), direction, n_bytes, stream=stream, call=call)

    def record(self, stream: int) -> int:
        self.event += 1
        self.builder.record(1, stream=stream, call=self._call(), sync=self.event)
        return self.event

    def wait(self, event: int, stream: int) -> None:
        self.builder.wait(1, stream=stream, call=self._call(), sync=event)

    def sync(self) -> None:
        self.builder.stream_sync(stream=COMPUTE, call=self._call())
        self.now = self.device

    def forward(self, layers: int = 2, *, opens: bool = True, waits: int = 1) -> None:
        if opens:
            self.wait(self.record(COMPUTE), LOAD)
        events = []
        for _ in range(layers):
            self.copy()
            events.append(self.record(LOAD))
        for event in events:
            for _ in range(waits):
                self.wait(event, COMPUTE)
            self.kernel()
        self.sync()


def found(engine: Engine, folder: Path, options: ForwardOptions | None = None) -> tuple[Trace, tuple[Forward, ...]]:
    trace = read_back(engine.builder, folder)
    return trace, find_forwards(trace, options)


def roles(trace: Trace, forward: Forward) -> list[tuple[str, int, str]]:
    """Return (role, layer, stream) of each operation in start order."""
    streams = [trace.streams[stream].number for stream in trace.operations.stream[forward.operations].tolist()]
    names = [Role(role).name.lower() for role in forward.role.tolist()]
    return list(zip(names, forward.layer.tolist(), streams, strict=True))


def test_waits_for_a_load_stream_are_layers(tmp_path: Path) -> None:
    engine = Engine()
    engine.forward()
    engine.forward()
    trace, forwards = found(engine, tmp_path)
    assert [forward.name for forward in forwards] == ["unnamed", "unnamed"]
    assert [forward.warmup for forward in forwards] == [True, False]
    for forward in forwards:
        assert forward.layers_from == "events"
        assert roles(trace, forward) == [
            ("load", 0, LOAD),
            ("load", 1, LOAD),
            ("compute", 0, COMPUTE),
            ("compute", 1, COMPUTE),
        ]


def test_repeated_waits_for_one_record_are_one_layer(tmp_path: Path) -> None:
    engine = Engine()
    engine.forward(waits=2)
    engine.forward(waits=2)
    _, forwards = found(engine, tmp_path)
    assert [np.unique(forward.layer[forward.layer >= 0]).tolist() for forward in forwards] == [[0, 1], [0, 1]]


def test_two_load_streams_feed_one_layer(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(2):
        opened = engine.record(COMPUTE)
        engine.wait(opened, LOAD)
        engine.wait(opened, LOAD + 1)
        events = []
        for _ in range(2):
            for stream in (LOAD, LOAD + 1):
                engine.copy(stream=stream)
                events.append(engine.record(stream))
        for key, value in zip(events[::2], events[1::2], strict=True):
            engine.wait(key, COMPUTE)
            engine.wait(value, COMPUTE)
            engine.kernel()
        engine.sync()
    trace, forwards = found(engine, tmp_path)
    loads = [(layer, stream) for role, layer, stream in roles(trace, forwards[1]) if role == "load"]
    assert loads == [(0, LOAD), (0, LOAD + 1), (1, LOAD), (1, LOAD + 1)]


def test_records_that_nobody_waits_for_cut_nothing(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(2):
        engine.wait(engine.record(COMPUTE), LOAD)
        engine.copy()
        engine.record(LOAD)
        engine.copy()
        event = engine.record(LOAD)
        engine.wait(event, COMPUTE)
        engine.kernel()
        engine.copy()
        event = engine.record(LOAD)
        engine.wait(event, COMPUTE)
        engine.kernel()
        engine.sync()
    trace, forwards = found(engine, tmp_path)
    assert [layer for role, layer, _ in roles(trace, forwards[0]) if role == "load"] == [0, 0, 1]


def test_writeback_with_events_is_no_load(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(2):
        engine.forward(opens=True)
        engine.wait(engine.record(COMPUTE), WRITEBACK)
        engine.copy("d2h", WRITEBACK)
        engine.wait(engine.record(WRITEBACK), COMPUTE)
        engine.kernel("next")
        engine.sync()
    _, forwards = found(engine, tmp_path)
    assert [np.unique(forward.layer[forward.layer >= 0]).tolist() for forward in forwards] == [[0, 1], [0, 1]]
    assert not any((forward.role == Role.WRITEBACK).any() for forward in forwards)


def test_a_few_token_ids_make_no_load_stream(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(2):
        engine.copy(stream=25, n_bytes=64)
        engine.wait(engine.record(25), COMPUTE)
        engine.forward()
    _, forwards = found(engine, tmp_path)
    assert [np.unique(forward.layer[forward.layer >= 0]).tolist() for forward in forwards] == [[0, 1], [0, 1]]


def test_passes_are_told_apart_by_the_kernels_that_repeat(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(3):
        for name in ("attention", "attention", "attention and head"):
            engine.copy()
            engine.wait(engine.record(LOAD), COMPUTE)
            engine.kernel(name)
    engine.sync()
    _, forwards = found(engine, tmp_path)
    assert [np.unique(forward.layer[forward.layer >= 0]).tolist() for forward in forwards] == [[0, 1, 2]] * 3


def test_passes_are_told_apart_by_the_hosts_waits(tmp_path: Path) -> None:
    engine = Engine()
    for kernel in ("prefill", "decode", "decode longer"):
        for layer in range(3):
            engine.copy()
            engine.wait(engine.record(LOAD), COMPUTE)
            engine.kernel(f"{kernel} {layer}")
        engine.sync()
    _, forwards = found(engine, tmp_path)
    assert [np.unique(forward.layer[forward.layer >= 0]).tolist() for forward in forwards] == [[0, 1, 2]] * 3


def test_equal_layers_without_any_wait_need_a_count(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(6):
        engine.copy()
        engine.wait(engine.record(LOAD), COMPUTE)
        engine.kernel()
    trace, forwards = found(engine, tmp_path)
    assert forwards == ()
    counted = find_forwards(trace, ForwardOptions(layers_per_forward=3))
    assert [np.unique(forward.layer[forward.layer >= 0]).tolist() for forward in counted] == [[0, 1, 2]] * 2


def test_a_named_forward_bounds_its_layers(tmp_path: Path) -> None:
    engine = Engine()
    for number in range(2):
        begin = engine.now + 1
        engine.forward(opens=False)
        engine.builder.range(f"forward {number}", begin, engine.now + 1)
    _, forwards = found(engine, tmp_path)
    assert [(forward.name, forward.layers_from) for forward in forwards] == [
        ("forward 0", "events"),
        ("forward 1", "events"),
    ]


def test_named_computes_give_events_loads_their_numbers(tmp_path: Path) -> None:
    engine = Engine()
    for _ in range(2):
        engine.wait(engine.record(COMPUTE), LOAD)
        events = []
        for _ in range(2):
            engine.copy()
            events.append(engine.record(LOAD))
        opened = engine.now + 1
        for layer, event in zip((7, 8), events, strict=True):
            begin = engine.now + 1
            engine.wait(event, COMPUTE)
            engine.kernel()
            engine.builder.range(f"compute layer {layer}", begin, engine.now + 6)
        engine.builder.range("forward", opened, engine.now + 7)
        engine.sync()
    trace, forwards = found(engine, tmp_path)
    assert {forward.layers_from for forward in forwards} == {"nvtx+events"}
    assert roles(trace, forwards[0]) == [
        ("load", 7, LOAD),
        ("load", 8, LOAD),
        ("compute", 7, COMPUTE),
        ("compute", 8, COMPUTE),
    ]


@pytest.mark.parametrize("layers_from", ["nvtx", None])
def test_names_of_both_leave_events_alone(tmp_path: Path, layers_from: str | None) -> None:
    engine = Engine()
    engine.forward()
    engine.builder.range("load layer 0", 100_000, 100_010).range("compute layer 0", 100_020, 100_030)
    _, forwards = found(engine, tmp_path, ForwardOptions(layers_from=layers_from))
    assert forwards == ()
