"""One forward of the reference workload: loads ahead on one stream, compute behind them on another, layer by layer.

As SGLang's HiCache does it: the loads of all layers are submitted at once, an event is recorded after each, and the
compute stream waits for a layer's event before that layer's compute.
"""

from __future__ import annotations

import threading
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager

    from instrument.cuda.gate import Gate
    from instrument.workload.faults import Around
    from instrument.workload.partners import InboundPeer, Writeback
    from instrument.workload.plan import Shape
    from instrument.workload.range_set import RangeSet
    from instrument.workload.storage import StorageReader
    from instrument.workload.timing import Marks

_FAILURE_CHECK_S = 0.1


@dataclass(frozen=True)
class Pipeline:
    """Everything that a forward uses; what a run goes without is None.

    ``buffers`` are the layers' places on the device (uint8). ``submit(layer)`` puts a layer's load on ``load_stream``,
    ``launch(layer)`` its compute on the current stream; ``pause`` is host work between two submissions; ``loader`` is
    the one thread that submits the loads instead of the caller. ``load_gate`` keeps the first layer's load from
    starting before it is submitted, where one call submits it; ``compute_gate`` does so for the first layer's compute.
    """

    shape: Shape
    ranges: RangeSet
    buffers: list[torch.Tensor]
    marks: Marks
    load_stream: torch.cuda.Stream
    compute_stream: torch.cuda.Stream
    submit: Callable[[int], None]
    launch: Callable[[int], None]
    around: Around
    pause: Callable[[], None] | None = None
    loader: ThreadPoolExecutor | None = None
    storage: StorageReader | None = None
    writeback: Writeback | None = None
    inbound: InboundPeer | None = None
    load_gate: Gate | None = None
    compute_gate: Gate | None = None


def run_forward(pipeline: Pipeline, number: int) -> None:
    """Run forward ``number`` (below 0: warm-up) and return when its compute is done."""
    with torch.cuda.stream(pipeline.compute_stream), pipeline.ranges.forward(number):
        _wait_for_buffers(pipeline)
        if pipeline.inbound is not None:
            pipeline.inbound.submit()
        if pipeline.loader is None:
            _submit_loads(pipeline, None)
            for layer in range(pipeline.shape.layers):
                _compute(pipeline, layer)
        else:
            _run_with_loader(pipeline, pipeline.loader)
        pipeline.compute_stream.synchronize()


def _wait_for_buffers(pipeline: Pipeline) -> None:
    """Let the loads start only when the forward before no longer uses the layers' buffers."""
    if pipeline.load_stream != pipeline.compute_stream:
        pipeline.load_stream.wait_stream(pipeline.compute_stream)
    if pipeline.writeback is not None:
        pipeline.load_stream.wait_stream(pipeline.writeback.stream)


def _submit_loads(pipeline: Pipeline, recorded: list[threading.Event] | None) -> None:
    """Submit every layer's load; set ``recorded[layer]`` once the event that stands for its end is on the stream."""
    marks, stream = pipeline.marks, pipeline.load_stream
    for layer in range(pipeline.shape.layers):
        if pipeline.storage is not None:
            pipeline.storage.before_load(layer)
        with pipeline.ranges.load(layer, pipeline.shape.layer_bytes):
            if layer and pipeline.pause is not None:
                pipeline.pause()
            with _held(pipeline.load_gate, stream, layer):
                marks.load_start[layer].record(stream)
                pipeline.submit(layer)
            marks.load_end[layer].record(stream)
        if recorded is not None:
            recorded[layer].set()


def _run_with_loader(pipeline: Pipeline, loader: ThreadPoolExecutor) -> None:
    """Compute each layer as soon as the loader thread has recorded its event: before that there is none to wait for."""
    recorded = [threading.Event() for _ in range(pipeline.shape.layers)]
    loading = loader.submit(_submit_loads, pipeline, recorded)
    for layer in range(pipeline.shape.layers):
        _wait_until_recorded(recorded[layer], loading)
        _compute(pipeline, layer)
    loading.result()


def _wait_until_recorded(recorded: threading.Event, loading: Future[None]) -> None:
    while not recorded.wait(_FAILURE_CHECK_S):
        if loading.done():
            loading.result()


def _held(gate: Gate | None, stream: torch.cuda.Stream, layer: int) -> AbstractContextManager[None]:
    """Hold the stream back while the first layer's work is submitted: only there does the event before it count."""
    return gate.held(stream) if gate is not None and layer == 0 else nullcontext()


def _compute(pipeline: Pipeline, layer: int) -> None:
    marks, stream = pipeline.marks, pipeline.compute_stream
    stream.wait_event(marks.load_end[layer])
    with pipeline.ranges.compute(layer, pipeline.shape.layer_bytes):
        pipeline.around.before()
        with _held(pipeline.compute_gate, stream, layer):
            marks.compute_start[layer].record(stream)
            pipeline.launch(layer)
        marks.compute_end[layer].record(stream)
        pipeline.around.after()
    if pipeline.writeback is not None:
        pipeline.writeback.submit(layer, marks.compute_end[layer])
