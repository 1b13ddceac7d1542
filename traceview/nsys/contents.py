"""What an export holds and lacks, and which flag of ``nsys profile`` would add it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceview.nsys.database import Database


@dataclass(frozen=True)
class Content:
    """A kind of data: the tables that hold it, the measures that need it, the flag that records it."""

    name: str
    tables: tuple[str, ...]
    measures: str
    fix: str


CONTENTS = (
    Content(
        "kernels",
        ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
        "forwards, accounting, overlap",
        "nsys profile --trace=cuda,nvtx",
    ),
    Content(
        "copies",
        ("CUPTI_ACTIVITY_KIND_MEMCPY",),
        "loads, overlap, copies, lanes",
        "nsys profile --trace=cuda,nvtx",
    ),
    Content(
        "api_calls",
        ("CUPTI_ACTIVITY_KIND_RUNTIME",),
        "forwards, sync, implicit_sync, submit and host in the accounting, blocking calls",
        "nsys profile --trace=cuda,nvtx",
    ),
    Content(
        "nvtx",
        ("NVTX_EVENTS",),
        "forwards and layers by name, ranges of blocking calls",
        "nsys profile --trace=cuda,nvtx",
    ),
    Content(
        "synchronisations",
        ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",),
        "layers by events, streams of blocking calls",
        "nsys profile --trace=cuda,nvtx",
    ),
    Content(
        "event_records",
        ("CUPTI_ACTIVITY_KIND_CUDA_EVENT",),
        "layers by events, loads submitted by another thread",
        "nsys profile --trace=cuda,nvtx (nsys 2022.1 or newer)",
    ),
    Content(
        "call_stacks",
        ("CUDA_CALLCHAINS",),
        "where blocking calls come from",
        "nsys profile --sample=process-tree --cudabacktrace=all:0",
    ),
    Content("gpu_metrics", ("GPU_METRICS",), "unexplained inbound traffic", "nsys profile --gpu-metrics-devices=all"),
    Content("nic_metrics", ("NET_NIC_METRIC",), "RDMA receive and send", "nsys profile --nic-metrics=true"),
)


def present(database: Database) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of the contents that the export holds, and of those that it lacks."""
    held = {content.name: any(database.has_rows(table) for table in content.tables) for content in CONTENTS}
    return tuple(name for name, has in held.items() if has), tuple(name for name, has in held.items() if not has)
