"""Adds sampled counters and Python stacks to an export under construction."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trace_builder import TraceBuilder

RX, TX = "PCIe RX Throughput [Throughput %]", "PCIe TX Throughput [Throughput %]"
GPU_TYPE = 1 << 48 | 7 << 32
"""Type of the counters of the machine's GPU 0; the low byte is the GPU."""
PYTHON_DOMAIN = "Python Backtrace on CUDA"


def gpu_samples(builder: TraceBuilder, name: str, percent: Mapping[int, int], *, gpu: int = 0) -> TraceBuilder:
    """Add the samples of one counter of one GPU: percent by time."""
    number = builder.string(name)
    kind = GPU_TYPE | gpu
    builder.row("TARGET_INFO_GPU_METRICS", typeId=kind, metricId=number, metricName=name)
    for time, value in percent.items():
        builder.row("GPU_METRICS", timestamp=time, rawTimestamp=time, typeId=kind, metricId=number, value=value)
    return builder


def generic_samples(
    builder: TraceBuilder, samples: Mapping[int, Mapping[str, int | str]], *, gpu: int = 0
) -> TraceBuilder:
    """Add samples as older exports have them: a JSON object of all counters by time."""
    kind = GPU_TYPE | gpu
    builder.row("GENERIC_EVENT_TYPES", typeId=kind, data=json.dumps({"Name": "GPU Metrics [test]"}))
    for time, values in samples.items():
        builder.row("GENERIC_EVENTS", timestamp=time, rawTimestamp=time, typeId=kind, data=json.dumps(values))
    return builder


def nic_samples(
    builder: TraceBuilder,
    counter: str,
    samples: Sequence[tuple[int, int, int]],
    *,
    unit: str = "bytes/ms",
    nic: int = 1,
    port: int = 1,
) -> TraceBuilder:
    """Add the samples of one counter of a NIC's port: (start, end, value); the NIC is called ``mlx5_N``."""
    index = builder.string(counter)
    identity = 1000 + nic
    builder.row("TARGET_INFO_NETWORK_METRICS", metricsListId=3, metricsIdx=index, name=counter, unit=unit)
    builder.row("TARGET_INFO_NIC_INFO", nicId=nic, name=f"mlx5_{nic}")
    builder.row("NIC_ID_MAP", nicId=nic, globalId=identity)
    for start, end, value in samples:
        row = {"start": start, "end": end, "value": value, "globalId": identity, "portId": port}
        builder.row("NET_NIC_METRIC", metricsListId=3, metricsIdx=index, **row)
    return builder


def python_mark(
    builder: TraceBuilder, at: int, frames: Sequence[tuple[str, str, int]] | None, *, thread: int | None = None
) -> TraceBuilder:
    """Add the mark that carries the Python stack of the call whose backtrace row starts at ``at``.

    ``frames`` are (function, file, line), innermost first; None is a mark that was exported without its payload.
    """
    listed = [
        {"Function": builder.string(function), "File": builder.string(file), "Line": line}
        for function, file, line in frames or ()
    ]
    payload = {PYTHON_DOMAIN: {"Thread state": "Running", "Frames count": len(listed), "Frames": listed}}
    text = None if frames is None else json.dumps(payload)
    return builder.mark("", at, domain=PYTHON_DOMAIN, thread=thread, jsonText=text)
