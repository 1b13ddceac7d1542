"""The traces that the fuzzer damages: a scene with something of everything in several layouts, and small real captures.

Columns of the files lose their constraints first, so that any of them may hold anything.
"""

from __future__ import annotations

import json
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from metric_rows import PYTHON_DOMAIN, RX, TX, generic_samples, gpu_samples, nic_samples
from trace_builder import TraceBuilder, layered_forward

SAMPLES = Path(__file__).parents[1] / "sample_traces"
_LAYOUTS = ("none", "2.9.1", "3.7.2", "3.20.3", "3.28.1")
_CAPTURES = ("item", "storage", "graph_nodes", "no_names", "inbound_peer", "pageable")
_FACTS = {
    "devices": [{"id": 0, "gpu_name": "NVIDIA H200", "pcie": {"generation": 5, "width": 16}, "numa_node": 0}],
    "host_buffers": [{"bytes": 1 << 20, "pinned": "cudaHostAlloc", "pages_by_node": {"0": 256}}],
    "workload": {"layers": 3},
}

BASES = (*_LAYOUTS, *_CAPTURES)
"""Names of the traces that are damaged."""


def everything(layout: str) -> TraceBuilder:
    """Build three forwards of three layers, with events, stacks, counters, graphs, peers, storage and marks beside."""
    builder = TraceBuilder(layout).gpu(0, "NVIDIA H200").gpu(1, "NVIDIA H200").null_stream(7)
    for number in range(3):
        _forward(builder, number, number * 100_000 + 1_000)
    for way in (RX, TX):
        gpu_samples(builder, way, {at: at // 1000 % 100 for at in range(0, 300_000, 10_000)})
    generic_samples(builder, {at: {"PCIe RX Throughput": 50} for at in range(0, 300_000, 50_000)})
    nic_samples(builder, "IB: Bytes received", [(at, at + 9_000, 700) for at in range(0, 300_000, 50_000)])
    builder.mark(f"facts {json.dumps(_FACTS)}", 5, domain="traceview")
    builder.capture("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node").diagnostic("Not all CUDA events were collected")
    return builder.kernel(310_000, 311_000, stream=99, process=4999, device=1)


def _forward(builder: TraceBuilder, number: int, start: int) -> None:
    """Add a forward, a read-back with its stacks, and one of everything that may stand beside it."""
    loads = [[(start + 300, start + 2_300), (start + 2_400, start + 5_000)], [(start + 5_000, start + 9_000)]]
    computes = [[(start + 5_100, start + 8_000)], [(start + 9_100, start + 9_900), (start + 9_950, start + 12_000)]]
    layered_forward(builder, start=start, loads=loads, computes=computes, number=number, n_bytes=64 << 10)
    at = start + 20_000
    builder.record(5, stream=13, call=(start + 1, start + 2), sync=number + 1)
    builder.wait(5, stream=7, call=(start + 3, start + 4), sync=number + 1)
    builder.copy(at, at + 900, "d2h", 4, memory="pageable", stream=7, call=(start + 100, start + 150))
    builder.stream_sync(stream=7, call=(start + 160, at + 950), correlation=9000 + number, callchainId=number)
    builder.stack(number, [("at::native::item", "libtorch.so"), ("THPVariable_item", "libtorch_python.so")])
    frames = [{"Function": builder.string("step"), "File": builder.string("serve.py"), "Line": 7}]
    payload = json.dumps({PYTHON_DOMAIN: {"Frames": frames}})
    builder.api("cudaStreamSynchronize", start + 159, at + 951, correlation=9000 + number, eventClass=67, callchainId=1)
    builder.mark("", start + 159, domain=PYTHON_DOMAIN, jsonText=payload)
    builder.copy(at + 1_000, at + 1_500, "p2p", 4096, stream=14, call=(at + 1, at + 2), srcDeviceId=0, dstDeviceId=1)
    builder.copy(at + 1_600, at + 1_700, "d2d", 4096, stream=7, call=(at + 3, at + 4))
    builder.memset(at + 1_700, at + 1_710, call=(at + 5, at + 6)).graph(at + 1_800, at + 1_900, call=(at + 7, at + 8))
    builder.migration(at + 2_000, at + 2_100).api("cudaMalloc_v3020", at + 2_200, at + 2_300)
    builder.range("storage read", start + 5, start + 200).range("stage", start + 50, start + 250, registered=True)
    builder.kernel(at + 3_000, at + 3_500, name="transfer_kv_layer<float>", stream=15, call=(at + 9, at + 10))


@cache
def base(name: str) -> bytes:
    """Return the content of one of the traces that are damaged."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.sqlite"
        if name in _LAYOUTS:
            everything(name).write(path)
        else:
            path.write_bytes((SAMPLES / f"{name}.sqlite").read_bytes())
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA writable_schema = ON")
            plain = "replace(replace(sql, ' NOT NULL', ''), ' PRIMARY KEY', '')"
            connection.execute(f"UPDATE sqlite_master SET sql = {plain} WHERE type = 'table'")
            connection.commit()
        return path.read_bytes()
