"""The reference workload: builds the pipeline that the options describe, runs it, and checks what arrived."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from instrument import facts
from instrument.cuda.gate import Gate
from instrument.cuda.streams import new_stream
from instrument.workload.bench import Bench, prepare, require_cuda
from instrument.workload.faults import around_compute, busy_pause
from instrument.workload.movers import Route, mover
from instrument.workload.outcome import describe_run
from instrument.workload.partners import inbound_peer, writeback
from instrument.workload.pipeline import Pipeline, run_forward
from instrument.workload.plan import pieces
from instrument.workload.pools import HostPool, fill, host_pool
from instrument.workload.range_set import named_ranges, no_ranges
from instrument.workload.storage import storage_reader
from instrument.workload.timing import marks_for, read_forward
from instrument.workload.verification import check_layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from instrument.workload.options import Options
    from instrument.workload.range_set import RangeSet


def run(options: Options) -> dict[str, Any]:
    """Run the workload and return its JSON line as plain values; ``verified`` tells whether the right bytes arrived."""
    require_cuda(options)
    with ExitStack() as stack:
        pool = stack.enter_context(host_pool(options, torch.cuda.current_device()))
        ranges = no_ranges() if options.fault == "no-names" else named_ranges()
        reader = None
        if options.storage is not None:
            reader = stack.enter_context(storage_reader(options.storage, options.shape, pool.array, ranges))
        known = _facts(options, pool)
        loader = None
        if options.fault == "thread":
            loader = stack.enter_context(ThreadPoolExecutor(1, "loader", torch.cuda.set_device, (0,)))
        bench = prepare(options)
        pipeline = replace(_pipeline(options, bench, pool, ranges), storage=reader, loader=loader)
        forwards = _run_forwards(options, pipeline, pool)
        return describe_run(options, bench, known, forwards) | _verify(options, pipeline)


def _facts(options: Options, pool: HostPool) -> dict[str, object]:
    """Collect the facts of this run and, unless the run is to leave no names, write them into the trace."""
    buffer = facts.HostBuffer("pool", pool.address, len(pool.array), pool.kind)
    state = facts.collect_facts if options.fault == "no-names" else facts.emit_facts
    return state({"workload": options.parameters(), "bound_to_node": pool.node}, buffers=[buffer])


def _pipeline(options: Options, bench: Bench, pool: HostPool, ranges: RangeSet) -> Pipeline:
    load_stream = bench.stream if options.fault == "same-stream" else new_stream()
    pause = busy_pause(options.late_us) if options.fault == "late-submission" else None
    return Pipeline(
        shape=options.shape,
        ranges=ranges,
        buffers=bench.buffers,
        marks=marks_for(options.shape.layers),
        load_stream=load_stream,
        compute_stream=bench.stream,
        submit=mover(Route(options, pool, bench.buffers, load_stream, pause)),
        launch=bench.launch,
        around=around_compute(options.fault, bench.stream),
        pause=pause,
        writeback=writeback(options.shape, bench.buffers) if options.writeback else None,
        inbound=inbound_peer(options.shape, bench.plain) if options.inbound_peer else None,
        load_gate=Gate() if _one_call_loads_a_layer(options) else None,
        compute_gate=Gate(),
    )


def _one_call_loads_a_layer(options: Options) -> bool:
    """Return whether a layer's load is one call that returns before its bytes have moved."""
    at_once = options.mover != "copy-engine" or len(pieces(options.shape, 0)) == 1
    return at_once and options.pool != "pageable"


def _run_forwards(options: Options, pipeline: Pipeline, pool: HostPool) -> list[dict[str, Any]]:
    """Run warm-up and measured forwards; return the times of the measured ones."""
    measured = []
    gc.collect()
    gc.disable()
    try:
        for number in range(-options.warmup, options.forwards):
            if number == options.forwards - 1:
                _clear_targets(pipeline, pool)
            if pipeline.storage is not None:
                pipeline.storage.forget_cache()
            run_forward(pipeline, number)
            _settle(pipeline)
            times = read_forward(pipeline.marks, number, options.shape.pool_bytes).as_json()
            if pipeline.storage is not None:
                times.update(pipeline.storage.take_times())
            if number >= 0:
                measured.append(times)
    finally:
        gc.enable()
    return measured


def _settle(pipeline: Pipeline) -> None:
    """Wait for transfers that may outlast the forward's compute."""
    for partner in (pipeline.writeback, pipeline.inbound):
        if partner is not None:
            partner.stream.synchronize()


def _clear_targets(pipeline: Pipeline, pool: HostPool) -> None:
    """Clear every place that the last forward must fill, so that its own bytes are checked and no older ones."""
    for buffer in pipeline.buffers:
        buffer.zero_()
    if pipeline.writeback is not None:
        pipeline.writeback.host.zero_()
    if pipeline.storage is not None:
        pool.array[:] = 0
    torch.cuda.synchronize()


def _verify(options: Options, pipeline: Pipeline) -> dict[str, Any]:
    """Compare the bytes on the device, and those written back, with the source, which is read or made anew."""
    shape = options.shape
    if options.storage is not None:
        reference = np.fromfile(options.storage.path, dtype=np.uint8)
    else:
        reference = np.empty(shape.pool_bytes, dtype=np.uint8)
        fill(reference, shape.seed)

    brought_back = torch.empty(shape.layer_bytes, dtype=torch.uint8, pin_memory=True)

    def on_device(layer: int) -> NDArray[np.uint8]:
        return brought_back.copy_(pipeline.buffers[layer]).numpy()

    result = {"verification": check_layers(reference, shape, on_device)}
    if pipeline.writeback is not None:
        host = pipeline.writeback.host.numpy().reshape(shape.layers, -1)
        result["writeback_verification"] = check_layers(reference, shape, lambda layer: host[layer])
    right = all(check.wrong_bytes == 0 for checks in result.values() for check in checks)
    found: dict[str, Any] = {name: [check.as_json() for check in checks] for name, checks in result.items()}
    if pipeline.inbound is not None:
        found["inbound_peer"] = pipeline.inbound.as_json()
        right = right and bool(found["inbound_peer"]["verified"])
    return {"verified": right, **found}
