"""The columns of the exported tables: type, unit and meaning of each. What is not listed here is not exported."""

from __future__ import annotations

from dataclasses import dataclass

from traceview.report import CATEGORIES


@dataclass(frozen=True)
class Column:
    """One column; ``kind`` is ``int64``, ``float64``, ``bool`` or ``text``, and every column can be empty in a row."""

    name: str
    kind: str
    unit: str
    about: str


@dataclass(frozen=True)
class ExportedTable:
    """What a table's rows are, and its columns in order."""

    about: str
    columns: tuple[Column, ...]


def _ints(unit: str, **about: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int64", unit, words) for name, words in about.items())


def _texts(**about: str) -> tuple[Column, ...]:
    return tuple(Column(name, "text", "", words) for name, words in about.items())


def _floats(unit: str, **about: str) -> tuple[Column, ...]:
    return tuple(Column(name, "float64", unit, words) for name, words in about.items())


def _flags(**about: str) -> tuple[Column, ...]:
    return tuple(Column(name, "bool", "", words) for name, words in about.items())


_TIMES = _ints("ns", start_ns="start on the trace's own timeline", end_ns="end, not included")
_STREAM = _ints("", process="process id", device="CUDA device id", context="CUDA context id", stream="stream id")
_THREAD = _ints("", process="process id", thread="thread id")
_OF_FORWARD = _ints("", forward="index of the forward, from 0", device="CUDA device id")

EXPORTED = {
    "operations": ExportedTable(
        "Work on the GPU in start order: kernels, copies, memsets, whole graph launches.",
        (
            *_ints("", operation="number of the row"),
            *_STREAM,
            *_TIMES,
            *_texts(
                kind="kernel, copy, memset or graph",
                name="name of a kernel",
                direction="of a copy: h2d, d2h, p2p, d2d or h2h",
                memory="of a copy's host side: pinned, pageable, managed or unknown; device where it has none",
            ),
            *_ints("bytes", bytes="bytes copied or set"),
            *_ints(
                "",
                pieces="copies that the row stands for",
                call="row of calls that submitted it, -1 for none",
                forward="index of the forward that it belongs to, -1 for none",
            ),
            *_texts(role="what it does in its forward: load, compute, input, readback, writeback or other"),
            *_ints("", layer="layer that it loads or computes, -1 for none"),
        ),
    ),
    "calls": ExportedTable(
        "API calls in start order; one that was recorded twice is one row.",
        (
            *_ints("", call="number of the row"),
            *_THREAD,
            *_TIMES,
            *_texts(
                name="documented name, without ABI suffix",
                kind="by its name: sync, blocking, async_copy, launch or other",
            ),
        ),
    ),
    "ranges": ExportedTable(
        "NVTX push/pop and start/end ranges in start order.",
        (
            *_THREAD,
            *_TIMES,
            *_texts(name="text of the range", domain="NVTX domain, empty for the default one"),
            *_ints("", payload="integer that the range carries, -1 for none"),
        ),
    ),
    "holes": ExportedTable(
        "Idle time of compute inside forwards, cut by cause; with the compute time it sums to the makespan.",
        (
            *_OF_FORWARD,
            *_TIMES,
            *_texts(category="what the time was spent on, see MEASURES.md"),
            *_ints("", layer="layer of the compute operation that ends it, -1 for none"),
            *_texts(waits_for="operation, call or range that was in the way when it began"),
            *_ints("", before="row of operations: the compute operation that ends the gap"),
        ),
    ),
    "forwards": ExportedTable(
        "One row per forward and device.",
        (
            *_texts(name="name of the forward's range"),
            *_ints("", index="from 0", process="process id", device="CUDA device id"),
            *_flags(warmup="left out of medians"),
            *_ints("ns", t0_ns="first start of a load or compute operation", t1_ns="last end of a compute operation"),
            *_texts(layers_from="where its layers were found: nvtx, events, or empty without layers"),
            *_ints(
                "ns",
                makespan_ns="t1 - t0",
                lead_in_ns="from the opening of the range to t0",
                first_layer_exposed_ns="from t0 to the first compute of the first layer",
                exposed_load_ns="idle while a layer's load was not done",
                exposed_load_later_ns="the same for all layers but the first",
                ideal_ns="makespan if nothing waited but for its own load",
                serial_ns="loads and computes one after the other",
            ),
            *_floats("ratio", pipeline_efficiency="ideal / makespan", hidden="share of the load time under compute"),
            *_ints(
                "ns",
                load_busy_ns="time with a load operation",
                compute_busy_ns="time with a compute operation",
                compute_inflation_ns="time that loads added to kernels",
                overlap_ns="time with both",
            ),
            *_ints("", load_pieces="copies that loads consist of"),
            *_ints("bytes", load_bytes="bytes loaded"),
            *(Column(f"{name}_ns", "int64", "ns", f"makespan given to {name}") for name in CATEGORIES),
        ),
    ),
    "layers": ExportedTable(
        "One row per layer of a forward, in the order in which they compute.",
        (
            *_OF_FORWARD,
            *_ints("", layer="number of the layer"),
            *_ints("ns", load_busy_ns="time with a load operation", compute_busy_ns="time with a compute operation"),
            *_ints("", load_pieces="copies that its load consists of"),
            *_ints("bytes", load_bytes="bytes loaded"),
            *_ints("ns", stall_ns="idle before its first compute operation"),
        ),
    ),
    "overlap": ExportedTable(
        "How long two streams, or two classes of work, run at the same time on one device.",
        (
            *_texts(scope="trace, or the index of a forward"),
            *_ints("", process="process id", device="CUDA device id"),
            *_texts(a="stream (pid/device/stream) or class", b="the other one"),
            *_ints("ns", busy_a_ns="time with work of a", busy_b_ns="time with work of b", overlap_ns="time with both"),
            *_floats("ratio", ratio="overlap / the shorter of the two busy times"),
        ),
    ),
    "copies": ExportedTable(
        "Copies of one stream, direction and kind of host memory together.",
        (
            *_ints("", device="CUDA device id"),
            *_texts(direction="h2d, d2h, p2p, d2d or h2h", memory="kind of the host side", stream="pid/device/stream"),
            *_ints("", pieces="how many copies"),
            *_ints("bytes", bytes="bytes copied"),
            *_ints("ns", busy_ns="time with a copy", span_ns="first start to last end"),
            *_floats("bytes/ns = GB/s", rate_busy="bytes / busy", rate_span="bytes / span"),
            *_ints(
                "bytes",
                min_bytes="smallest piece",
                median_bytes="median piece",
                p95_bytes="95 % of the pieces are no larger",
                max_bytes="largest piece",
            ),
            *_ints(
                "ns", gap_median_ns="median gap between two pieces", host_median_ns="median time of a submitting call"
            ),
        ),
    ),
    "syncs": ExportedTable(
        "Blocking calls, grouped by everything but their times.",
        (
            *_texts(api="documented name", kind="explicit, implicit or scalar_readback"),
            *_ints("", forward="index of the forward, empty outside any", count="how many calls"),
            *_flags(
                accidental="nobody can have meant it; empty outside any forward",
                boundary="after the last compute launch",
            ),
            *_ints("ns", blocked_ns="time inside the calls", cost_ns="compute time lost, restart included"),
            *_texts(
                range="innermost NVTX range",
                where="call stack, innermost frame first",
                direction="which way the call copied",
            ),
        ),
    ),
}
"""By name of the table, in the order in which they are written."""
