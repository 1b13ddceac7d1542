"""What a slimmed export keeps beside the rows of its part, as data: tables, and the columns that hold texts.

A table that is named nowhere here is not kept, and a text that is named nowhere is emptied: what a new version of
Nsight adds stays out until somebody has looked at it.
"""

from __future__ import annotations

import re

from traceview.nsys import schema
from traceview.nsys.slim_rows import STACKS_TABLE

STRINGS_TABLE = "StringIds"
CAPTURE_TABLE = "META_DATA_CAPTURE"
VERSION_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")

_ENUMERATIONS = (schema.COPY_KINDS_TABLE, schema.MEMORY_KINDS_TABLE, schema.MIGRATION_CAUSES_TABLE)

WHOLE_TABLES = (
    "TARGET_INFO_SESSION_START_TIME",
    "TARGET_INFO_GPU",
    "TARGET_INFO_CUDA_GPU",
    "TARGET_INFO_CUDA_DEVICE",
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    "TARGET_INFO_CUDA_NULL_STREAM",
    "TARGET_INFO_CUDA_STREAM",
    *_ENUMERATIONS,
)
"""Small tables of which every row is kept: the session's start, GPUs, contexts, streams, what kinds of copies mean."""

METRIC_TIMES = {
    "GPU_METRICS": ("timestamp", "rawTimestamp"),
    "NET_NIC_METRIC": ("start",),
}
"""Tables of hardware counters, kept on request around the part's time, with the columns that may give their times."""

METRIC_NAMES = (
    schema.GPU_COUNTERS_TABLE,
    schema.NIC_COUNTERS_TABLE,
    "TARGET_INFO_NIC_INFO",
    "NIC_ID_MAP",
)
"""Tables that say what the counters are, kept with them."""

TEXTS = {
    ("TARGET_INFO_GPU", "name"),
    ("TARGET_INFO_CUDA_GPU", "name"),
    *((table, column) for table in _ENUMERATIONS for column in ("name", "label")),
    (schema.NVTX_TABLE, "text"),
    ("DIAGNOSTIC_EVENT", "text"),
    (schema.GPU_COUNTERS_TABLE, "typeName"),
    (schema.GPU_COUNTERS_TABLE, "metricName"),
    (schema.NIC_COUNTERS_TABLE, "name"),
    (schema.NIC_COUNTERS_TABLE, "unit"),
    ("TARGET_INFO_NIC_INFO", "name"),
}
"""Columns whose texts are kept, scrubbed; (table, column)."""

JSON_TEXT = (schema.NVTX_TABLE, "jsonText")
"""The column of Python stacks: JSON with ids of strings."""

STRING_IDS = {
    "CUPTI_ACTIVITY_KIND_KERNEL": ("demangledName", "shortName", "mangledName"),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("nameId",),
    schema.NVTX_TABLE: ("textId",),
    STACKS_TABLE: ("symbol", "module"),
}
"""Columns that hold ids of strings, by table."""

MODULE_IDS = {(STACKS_TABLE, "module")}
"""Those of them whose strings are paths of libraries."""

EMPTIED = {("TARGET_INFO_GPU", "luid"), ("TARGET_INFO_NIC_INFO", "GUID")}
"""Columns of numbers that are not kept: they identify one piece of hardware."""

VERSION_KEYS = re.compile(r"EXPORT_(?:PRODUCT_NAME|PRODUCT_VERSION|SCHEMA_VERSION(?:_\w+)?)")
"""Lines of the export's description that are kept."""

CAPTURE_KEYS = re.compile(r"(?:PROCESS_\d+:)?CUDA_GRAPH_TRACE_OPTIONS:MODE")
"""Lines of the capture's description that are kept: how graphs were traced."""
