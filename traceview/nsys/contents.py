"""Which kinds of data an export holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.model import Content

if TYPE_CHECKING:
    from traceview.nsys.database import Database

_TABLES = {
    Content.KERNELS: ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
    Content.COPIES: ("CUPTI_ACTIVITY_KIND_MEMCPY",),
    Content.API_CALLS: ("CUPTI_ACTIVITY_KIND_RUNTIME",),
    Content.NVTX: ("NVTX_EVENTS",),
    Content.SYNCHRONISATIONS: ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",),
    Content.EVENT_RECORDS: ("CUPTI_ACTIVITY_KIND_CUDA_EVENT",),
    Content.CALL_STACKS: ("CUDA_CALLCHAINS",),
    Content.GPU_METRICS: ("GPU_METRICS",),
    Content.NIC_METRICS: ("NET_NIC_METRIC",),
}


def present(database: Database) -> tuple[tuple[Content, ...], tuple[Content, ...]]:
    """Return the kinds of data that the export holds, and those that it lacks: no such table, or an empty one."""
    held = {content: any(database.has_rows(table) for table in tables) for content, tables in _TABLES.items()}
    held[Content.GPU_METRICS] = held[Content.GPU_METRICS] or _has_generic_metrics(database)
    return tuple(one for one, has in held.items() if has), tuple(one for one, has in held.items() if not has)


def _has_generic_metrics(database: Database) -> bool:
    """Return whether an older export holds GPU metrics as generic events, judged by the descriptions of their types."""
    if "data" not in database.tables.get("GENERIC_EVENT_TYPES", frozenset()):
        return False
    query = "SELECT 1 FROM GENERIC_EVENT_TYPES WHERE data LIKE '%GPU Metrics%' OR data LIKE '%PCIe%' LIMIT 1"
    return bool(database.rows(query)) and database.has_rows("GENERIC_EVENTS")
