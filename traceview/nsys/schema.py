"""What Nsight Systems calls things, as data.

A column is looked for under each of its names and takes its default where the export has none of them, so one
description serves every version. Source: NVIDIA's export schema reference and exports of schema "none" to 3.28.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from traceview.model import CallKind, Direction, Memory

INVALID_ID = 4294967295
"""Stream or event id that means "none" in a synchronisation row."""

BACKTRACE_CLASS = 67
"""eventClass of the second row that a call gets when call stacks were captured."""


TIMES = (-(1 << 61), 1 << 61)
"""ns that a clock can show: 73 years around its zero, since a normalised export counts from 1970."""

SIZES = (0, 1 << 44)
"""Bytes that one operation can move, 16 TiB at most, so that sums over half a million of them fit in 64 bits."""

REQUIRED = -(1 << 63)
"""Default of a column that every version has and without which a row means nothing."""


@dataclass(frozen=True)
class Field:
    """One integer of a row: columns of the export, each shifted left and added up; without columns a constant."""

    columns: tuple[str, ...]
    default: int = 0
    """the value where the export lacks a column, or the row has none; ``REQUIRED`` where neither may be"""
    shifts: tuple[int, ...] = (0,)
    small: bool = False
    """whether it is a number of few digits (an id, a kind), held in the narrowest integers that the file allows"""
    within: tuple[int, int] | None = None
    """smallest and largest value that can be true"""
    needed: bool = False
    """whether every version has the columns, although a row may lack a value: without them its default would lie"""


def column(name: str, default: int = 0, within: tuple[int, int] | None = None, *, needed: bool = False) -> Field:
    """Return the field that is one column of the export: a time, a size, a serialised id."""
    return Field((name,), default, within=within, needed=needed)


def small(name: str, default: int = 0, *, needed: bool = False) -> Field:
    """Return the field that is one column of small numbers."""
    return Field((name,), default, small=True, needed=needed)


@dataclass(frozen=True)
class Source:
    """A table under each name it has had, and the fields read from it."""

    tables: tuple[str, ...]
    fields: dict[str, Field]


_TIMES = {"start": column("start", REQUIRED, TIMES), "end": column("end", REQUIRED, TIMES)}
_PLACE = {
    "pid": column("globalPid", needed=True),
    "device": small("deviceId", REQUIRED),
    "context": small("contextId", REQUIRED),
    "green": small("greenContextId"),
    "stream": small("streamId", REQUIRED),
}
_CORRELATION = {"correlation": small("correlationId", needed=True)}
_OPERATION = {**_TIMES, **_PLACE, **_CORRELATION}
_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_SHIFTS = (32, 43, 53, 0, 11, 22)

KERNELS = Source(
    ("CUPTI_ACTIVITY_KIND_KERNEL",),
    {
        **_OPERATION,
        "name": small("demangledName", -1, needed=True),
        "shape": Field(_SHAPE, shifts=_SHIFTS),
    },
)
COPIES = Source(
    ("CUPTI_ACTIVITY_KIND_MEMCPY",),
    {
        **_OPERATION,
        "n_bytes": column("bytes", REQUIRED, SIZES),
        "copy_kind": small("copyKind", REQUIRED),
        "source_kind": small("srcKind", -1),
        "target_kind": small("dstKind", -1),
        "source": small("srcDeviceId", -1),
        "target": small("dstDeviceId", -1),
        "pieces": small("copyCount", 1),
        "cause": small("migrationCause"),
    },
)
MEMSETS = Source(("CUPTI_ACTIVITY_KIND_MEMSET",), {**_OPERATION, "n_bytes": column("bytes", REQUIRED, SIZES)})
GRAPHS = Source(("CUPTI_ACTIVITY_KIND_GRAPH_TRACE",), {**_OPERATION, "name": Field((), -1, small=True)})
CALLS = Source(
    ("CUPTI_ACTIVITY_KIND_RUNTIME",),
    {
        **_TIMES,
        **_CORRELATION,
        "tid": column("globalTid", needed=True),
        "name": small("nameId", REQUIRED),
        "event_class": small("eventClass", needed=True),
        "stack": small("callchainId", -1),
    },
)
EVENT_RECORDS = Source(
    ("CUPTI_ACTIVITY_KIND_CUDA_EVENT",),
    {**_PLACE, **_CORRELATION, "event": column("eventId", -1, needed=True), "sync": column("eventSyncId", -1)},
)
SYNCHRONISATIONS = Source(
    ("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",),
    {**_PLACE, **_CORRELATION, "event": column("eventId", INVALID_ID, needed=True), "sync": column("eventSyncId", -1)},
)
GPU_METRICS = Source(
    ("GPU_METRICS",),
    {
        "time": column("timestamp"),
        "type": column("typeId"),
        "metric": small("metricId", -1),
        "value": small("value"),
    },
)
GPU_COUNTERS_TABLE = "TARGET_INFO_GPU_METRICS"
NIC_METRICS = Source(
    ("NET_NIC_METRIC",),
    {
        **_TIMES,
        "nic": column("globalId"),
        "port": small("portId"),
        "list": column("metricsListId"),
        "index": small("metricsIdx"),
        "value": column("value"),
    },
)
NIC_COUNTERS_TABLE = "TARGET_INFO_NETWORK_METRICS"
STRINGS_TABLE = "StringIds"
NVTX_TABLE = "NVTX_EVENTS"
NVTX_RANGES = (59, 60)
NVTX_MARK = 34
NVTX_DOMAIN = 75

SLIM_KEY = "TRACEVIEW_SLIM:"
"""Begins the lines of the capture's description that a slimmed export says about itself."""

COPY_KINDS_TABLE = "ENUM_CUDA_MEMCPY_OPER"
COPY_KINDS = ("UNKNOWN", "HTOD", "DTOH", "HTOA", "ATOH", "ATOA", "ATOD", "DTOA", "DTOD", "HTOH", "PTOP")
MIGRATION_KINDS = ("UVM_HTOD", "UVM_DTOH", "UVM_DTOD")
"""They follow ``COPY_KINDS`` in the documented order of copy kinds."""
MEMORY_KINDS_TABLE = "ENUM_CUDA_MEM_KIND"
MEMORY_KINDS = ("PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC", "UNKNOWN")
"""Nsight's own order; CUPTI numbers the same words differently."""

MIGRATION_CAUSES_TABLE = "ENUM_CUDA_UNIF_MEM_MIGRATION"
MIGRATION_CAUSES = ("UNKNOWN", "USER", "COHERENCE", "PREFETCH", "EVICTION", "ACCESS_COUNTERS")
"""Why unified memory moved, in the documented order, which is that of ``Migrations.cause``."""

DIRECTIONS = {
    "HTOD": Direction.H2D,
    "HTOA": Direction.H2D,
    "DTOH": Direction.D2H,
    "ATOH": Direction.D2H,
    "ATOA": Direction.D2D,
    "ATOD": Direction.D2D,
    "DTOA": Direction.D2D,
    "DTOD": Direction.D2D,
    "HTOH": Direction.H2H,
    "PTOP": Direction.P2P,
    "UVM_HTOD": Direction.H2D,
    "UVM_DTOH": Direction.D2H,
    "UVM_DTOD": Direction.D2D,
}
MEMORIES = {
    "PAGEABLE": Memory.PAGEABLE,
    "PINNED": Memory.PINNED,
    "DEVICE": Memory.DEVICE,
    "ARRAY": Memory.DEVICE,
    "DEVICE_STATIC": Memory.DEVICE,
    "MANAGED": Memory.MANAGED,
    "MANAGED_STATIC": Memory.MANAGED,
}

_ABI_SUFFIX = re.compile(r"(?:_v\d+|_ptsz|_ptds)*$")
_CALL_KINDS = (
    (CallKind.SYNC, re.compile(r"cuda(?:Device|Stream|Event|Thread)Synchronize|cu(?:Ctx|Stream|Event)Synchronize")),
    (CallKind.ASYNC_COPY, re.compile(r"cu(?:da)?Memcpy\w*Async")),
    (CallKind.BLOCKING, re.compile(r"cu(?:da)?Mem(?:cpy|set)(?!\w*Async)\w*")),
    (CallKind.BLOCKING, re.compile(r"cudaMalloc(?:Pitch|3D|Array|3DArray|MipmappedArray|Host|Managed)?")),
    (CallKind.BLOCKING, re.compile(r"cudaFree(?:Host|Array|MipmappedArray)?|cudaHost(?:Alloc|Register|Unregister)")),
    (CallKind.BLOCKING, re.compile(r"cuMemAlloc(?:Pitch|Host|Managed)?|cuMemFree(?:Host)?|cuMem(?:Create|Release)")),
    (CallKind.BLOCKING, re.compile(r"cuMemHost(?:Alloc|Register|Unregister)|cu(?:Mipmapped)?Array(?:3D)?Create")),
    (CallKind.BLOCKING, re.compile(r"cu(?:Mipmapped)?ArrayDestroy")),
    (CallKind.LAUNCH, re.compile(r"cu(?:da)?(?:Graph)?Launch(?!HostFunc)\w*")),
)


def documented_name(api_name: str) -> str:
    """Return an API call's name as the manuals write it: without ``_v3020`` and ``_ptsz``."""
    return _ABI_SUFFIX.sub("", api_name)


def call_kind(name: str) -> CallKind:
    """Return what a call of this documented name does to the thread that makes it."""
    return next((kind for kind, pattern in _CALL_KINDS if pattern.fullmatch(name)), CallKind.OTHER)
