"""Random captures full of ties: equal times, equal correlation ids, ranges that cover each other exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st
from metric_rows import RX, gpu_samples, nic_samples
from trace_builder import TraceBuilder

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

MAIN = 4711
PROCESSES = (MAIN, MAIN, MAIN, 4712)
STREAMS = (7, 7, 13, 13, 14)
RANGES = ("forward 0", "forward 1", "load layer 0", "load layer 1", "compute layer 0", "compute layer 1", "other")
CALLS = (
    "cudaLaunchKernel_v7000",
    "cudaMemcpyAsync_v3020",
    "cudaMemcpy_v3020",
    "cudaStreamSynchronize_v3020",
    "cudaDeviceSynchronize_v3020",
    "cudaEventQuery_v3020",
)


@st.composite
def tied_scenes(draw: DrawFn) -> TraceBuilder:
    """Return a capture of a forward of two layers, and up to 30 rows that fall anywhere into it."""
    builder = TraceBuilder().range("forward 0", 0, 12)
    for layer in (0, 1):
        opened = 6 * layer
        builder.range(f"load layer {layer}", opened, opened + 2).range(f"compute layer {layer}", opened + 2, opened + 5)
        builder.copy(opened + 1, opened + 4, stream=13, call=(opened, opened + 1), correlation=100 + layer)
        builder.kernel(opened + 4, opened + 7, stream=7, call=(opened + 2, opened + 3), correlation=110 + layer)
    for _ in range(draw(st.integers(1, 30))):
        _ADDERS[draw(st.sampled_from(sorted(_ADDERS)))](draw, builder)
    return builder


def _interval(draw: DrawFn, longest: int = 4) -> tuple[int, int]:
    start = draw(st.integers(0, 12))
    return start, start + draw(st.integers(0, longest))


def _place(draw: DrawFn) -> dict[str, Any]:
    """Return where an operation runs and which call submitted it: one of few ids, so that several calls may have it."""
    return {
        "stream": draw(st.sampled_from(STREAMS)),
        "device": draw(st.sampled_from((0, 0, 0, 1))),
        "process": draw(st.sampled_from(PROCESSES)),
        "correlation": draw(st.sampled_from((None, 1, 2, 3, 100, 110))),
    }


def _thread(draw: DrawFn) -> dict[str, Any]:
    process = draw(st.sampled_from(PROCESSES))
    return {"process": process, "thread": draw(st.sampled_from((process, process, 9)))}


def _kernel(draw: DrawFn, builder: TraceBuilder) -> None:
    shape = (draw(st.integers(1, 2)), 1, 1, 32, 1, 1)
    builder.kernel(*_interval(draw), name=draw(st.sampled_from("ab")), shape=shape, **_place(draw))


def _copy(draw: DrawFn, builder: TraceBuilder) -> None:
    way, memory = draw(st.sampled_from(("h2d", "h2d", "d2h", "d2d"))), draw(st.sampled_from(("pinned", "pageable")))
    builder.copy(*_interval(draw), way, draw(st.sampled_from((4, 4096))), memory=memory, **_place(draw))


def _memset(draw: DrawFn, builder: TraceBuilder) -> None:
    builder.memset(*_interval(draw), **_place(draw))


def _call(draw: DrawFn, builder: TraceBuilder) -> None:
    correlation, stack = draw(st.sampled_from((1, 2, 3, 100, 110))), draw(st.sampled_from((0, 0, 67)))
    name = draw(st.sampled_from(CALLS))
    builder.api(name, *_interval(draw), correlation=correlation, eventClass=stack, **_thread(draw))


def _range(draw: DrawFn, builder: TraceBuilder) -> None:
    domain, payload = draw(st.sampled_from((None, None, "library"))), draw(st.sampled_from((None, 1, 2)))
    name, times = draw(st.sampled_from(RANGES)), _interval(draw, 12)
    builder.range(name, *times, domain=domain, uint64Value=payload, **_thread(draw))


def _event(draw: DrawFn, builder: TraceBuilder) -> None:
    event, sync = draw(st.integers(1, 2)), draw(st.sampled_from((None, 1, 2)))
    add = draw(st.sampled_from((builder.record, builder.wait)))
    call = draw(st.sampled_from((None, _interval(draw))))
    add(event, sync=sync, **{**_place(draw), "call": call or (0, 0)})


def _stream_sync(draw: DrawFn, builder: TraceBuilder) -> None:
    builder.stream_sync(call=_interval(draw), **_place(draw))


def _description(draw: DrawFn, builder: TraceBuilder) -> None:
    """Say something about the capture more than once, and not always the same."""
    number = draw(st.integers(0, 2))
    builder.mark(f'facts {{"number": {number}}}', draw(st.integers(0, 2)), domain="traceview")
    builder.diagnostic(f"{number} CUDA events dropped").gpu(0, f"GPU {number}", gpu=number)
    builder.capture(f"PROCESS_{number}:CUDA_GRAPH_TRACE_OPTIONS:MODE", draw(st.sampled_from(("Graph", "Node"))))


def _counters(draw: DrawFn, builder: TraceBuilder) -> None:
    start, end = _interval(draw)
    gpu_samples(builder, RX, {start: draw(st.integers(0, 9)), end: draw(st.integers(0, 9))})
    nic_samples(builder, "IB: Bytes received", [(start, end, draw(st.integers(0, 9)))])


_ADDERS = {
    "counters": _counters,
    "description": _description,
    "kernel": _kernel,
    "copy": _copy,
    "memset": _memset,
    "call": _call,
    "range": _range,
    "event": _event,
    "stream_sync": _stream_sync,
}
