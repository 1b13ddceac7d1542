"""Which tables and columns each version of the Nsight Systems SQLite export has, as data.

A column is written ``name``, with ``?`` where it may be NULL, ``:TEXT`` or ``:REAL`` where it is no integer, and
``@3.7.2`` where only exports from that schema version on have it. Schema ``none`` is what was exported before 2022.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACE = "deviceId contextId greenContextId?@{green} streamId correlationId? globalPid?"
_TIMED = "start end " + _PLACE

_COLUMNS = {
    "StringIds": "id:PRIMARY value:TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs? utcTime?:TEXT localTime?:TEXT systemClockNs?@3.24.7"
    " sessionStartCntVctNs?@3.28.1",
    "ANALYSIS_DETAILS@2.9.1": "globalVid duration startTime stopTime",
    "EXPORT_META_DATA@2.9.1-3.1.7": "name:TEXT value?:TEXT",
    "META_DATA_EXPORT@3.4.0": "name:TEXT value?:TEXT",
    "META_DATA_CAPTURE@3.4.0": "name:TEXT value?:TEXT",
    "DIAGNOSTIC_EVENT@3.11.1": "timestamp timestampType source severity text:TEXT globalPid?",
    "TARGET_INFO_CUDA_GPU@none-none": "deviceId name:TEXT totalMemory memoryBandwidth coreClockRate",
    "TARGET_INFO_GPU@2.9.1": "vmId id name?:TEXT busLocation?:TEXT isDiscrete? totalMemory? memoryBandwidth? smCount?"
    " chipName?:TEXT asyncEngines?",
    "TARGET_INFO_CUDA_DEVICE@3.17.2": "gpuId? cudaId pid uuid?:TEXT@3.24.7 numMultiprocessors?@3.24.7",
    "TARGET_INFO_CUDA_NULL_STREAM@none-3.6.0": "streamId hwId vmId processId deviceId contextId",
    "TARGET_INFO_CUDA_CONTEXT_INFO@3.7.2": "nullStreamId hwId vmId processId deviceId contextId parentContextId?"
    " isGreenContext? numMultiprocessors?@3.24.7",
    "TARGET_INFO_CUDA_STREAM": "streamId hwId vmId processId contextId priority flag",
    "CUPTI_ACTIVITY_KIND_KERNEL": _TIMED.format(green="3.7.2") + " demangledName shortName mangledName?@2.9.1"
    " launchType? cacheConfig? registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory"
    " dynamicSharedMemory localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted? graphNodeId?"
    " sharedMemoryLimitConfig?@2.9.1 qmdBulkReleaseDone?@3.23.3 qmdPreexitDone?@3.23.3 qmdLastCtaDone?@3.23.3"
    " graphId?@3.23.3 clusterX?@3.23.3 clusterY?@3.23.3 clusterZ?@3.23.3 clusterSchedulingPolicy?@3.23.3"
    " sharedMemoryRequestedPercentage?@3.24.8 tensorSizeMinusOneElements?:TEXT@3.24.18",
    "CUPTI_ACTIVITY_KIND_MEMCPY": _TIMED.format(green="3.7.2") + " bytes copyKind deprecatedSrcId? srcKind? dstKind?"
    " srcDeviceId? srcContextId? dstDeviceId? dstContextId? migrationCause?@2.9.1 graphNodeId? virtualAddress?@2.9.1"
    " copyCount?@3.17.2",
    "CUPTI_ACTIVITY_KIND_MEMSET": _TIMED.format(green="3.13.2") + " value bytes graphNodeId? memKind?",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE@3.20.3": _TIMED.format(green="3.20.3") + " graphId graphExecId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start end eventClass globalTid? correlationId? nameId returnValue"
    " callchainId?@2.9.1",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": _TIMED.format(green="3.7.2") + " deprecatedSyncType?@3.17.2 syncType eventId"
    " eventSyncId?@3.17.2",
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT@2.9.1": "timestamp?@3.23.3 " + _PLACE.format(green="3.13.2") + " eventId"
    " eventSyncId?@3.20.3",
    "NVTX_EVENTS": "start end? eventType rangeId? category? color? text?:TEXT globalTid? endGlobalTid? textId?"
    " domainId? uint64Value? int64Value? doubleValue?:REAL uint32Value? int32Value? floatValue?:REAL jsonTextId?"
    " jsonText?:TEXT binaryData?:TEXT@3.16.1 eventId?@3.28.1",
    "CUDA_CALLCHAINS": "id symbol module unresolved? originalIP? stackDepth",
    "GPU_METRICS@3.11.1": "rawTimestamp? timestamp typeId metricId value",
    "TARGET_INFO_GPU_METRICS@3.11.1": "typeId sourceId typeName:TEXT metricId metricName:TEXT",
    "GENERIC_EVENTS@none-3.7.2": "rawTimestamp timestamp typeId data:TEXT",
    "GENERIC_EVENT_TYPES@none-3.7.2": "typeId sourceId data:TEXT",
    "TARGET_INFO_NIC_INFO@3.1.7": "GUID stateName:TEXT nicId name:TEXT deviceId vendorId linkLayer",
    "NET_NIC_METRIC@3.7.2": "start end globalId portId metricsListId metricsIdx value",
    "TARGET_INFO_NETWORK_METRICS@3.7.2": "metricsListId metricsIdx name:TEXT description:TEXT unit:TEXT",
    "NIC_ID_MAP@3.23.3": "nicId globalId",
    "ENUM_CUDA_MEMCPY_OPER@3.0.0": "id:PRIMARY name?:TEXT label?:TEXT",
    "ENUM_CUDA_MEM_KIND@3.0.0": "id:PRIMARY name?:TEXT label?:TEXT",
    "ENUM_CUDA_UNIF_MEM_MIGRATION@3.0.0": "id:PRIMARY name?:TEXT label?:TEXT",
    "ENUM_CUPTI_SYNC_TYPE@3.0.0": "id:PRIMARY name?:TEXT label?:TEXT",
    "ENUM_CUDA_KRENEL_LAUNCH_TYPE@3.0.0-3.1.2": "id:PRIMARY name?:TEXT label?:TEXT",
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE@3.1.7": "id:PRIMARY name?:TEXT label?:TEXT",
    "UnwindMethodType@none-3.1.7": "number name:TEXT",
    "ENUM_STACK_UNWIND_METHOD@3.4.0": "id:PRIMARY name?:TEXT label?:TEXT",
}
"""Table, with the first and last schema version that has it, to its columns in order."""

_PRODUCTS = {
    "none": "2021.1",
    "2.9.1": "2022.2.1.31",
    "3.0.0": "2022.4",
    "3.1.7": "2023.2",
    "3.4.0": "2023.3",
    "3.7.2": "2023.4.4",
    "3.13.2": "2024.5",
    "3.17.2": "2025.1.3",
    "3.20.3": "2025.3.2.0",
    "3.23.3": "2025.5.1.121",
    "3.25.0": "2026.2.1.210",
    "3.28.1": "2026.4",
}

_WORDS = {
    "ENUM_CUDA_MEMCPY_OPER": "CUDA_MEMCPY_KIND_"
    " UNKNOWN HTOD DTOH HTOA ATOH ATOA ATOD DTOA DTOD HTOH PTOP UVM_HTOD UVM_DTOH UVM_DTOD",
    "ENUM_CUDA_MEM_KIND": "CUDA_MEMOPR_MEMORY_KIND_"
    " PAGEABLE PINNED DEVICE ARRAY MANAGED DEVICE_STATIC MANAGED_STATIC UNKNOWN",
    "ENUM_CUDA_UNIF_MEM_MIGRATION": "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_"
    " UNKNOWN USER COHERENCE PREFETCH EVICTION ACCESS_COUNTERS",
    "ENUM_CUPTI_SYNC_TYPE": "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_"
    " UNKNOWN EVENT_SYNCHRONIZE STREAM_WAIT_EVENT STREAM_SYNCHRONIZE CONTEXT_SYNCHRONIZE",
}

ENUMERATIONS = {table: tuple(words.split()[0] + word for word in words.split()[1:]) for table, words in _WORDS.items()}
"""The names in each enumeration's table; a name's position is its number."""


@dataclass(frozen=True)
class SyncNumbers:
    """The ``syncType`` that a version writes for each kind of synchronisation; they differ from the file's own enum."""

    context: int
    event: int
    stream: int
    wait: int


@dataclass(frozen=True)
class Column:
    """One column of one version's table."""

    name: str
    sql: str
    nullable: bool
    text: bool


@dataclass(frozen=True)
class Layout:
    """One version of the export: its tables, its numbers, and where it says which version it is."""

    schema: str
    product: str
    tables: dict[str, tuple[Column, ...]]
    sync: SyncNumbers

    @property
    def meta_table(self) -> str | None:
        """Return the table that names the version, or None where there is none."""
        return next((name for name in ("META_DATA_EXPORT", "EXPORT_META_DATA") if name in self.tables), None)

    def has(self, table: str, column: str = "") -> bool:
        """Return whether this version has a table, and a column in it."""
        return table in self.tables and (not column or any(column == each.name for each in self.tables[table]))


def _number(version: str) -> tuple[int, ...]:
    return () if version == "none" else tuple(int(part) for part in version.split("."))


def _columns(words: str, version: tuple[int, ...]) -> tuple[Column, ...]:
    columns = []
    for word in words.split():
        parts = re.fullmatch(r"(?P<name>\w+)(?P<null>\?)?(?::(?P<type>\w+))?(?:@(?P<since>[\d.]+))?", word)
        assert parts, word
        if version < _number(parts["since"] or "none"):
            continue
        kind = parts["type"] or "INTEGER"
        sql = "INTEGER PRIMARY KEY" if kind == "PRIMARY" else kind + ("" if parts["null"] else " NOT NULL")
        columns.append(Column(parts["name"], f'"{parts["name"]}" {sql}', bool(parts["null"]), kind == "TEXT"))
    return tuple(columns)


def _tables(version: tuple[int, ...]) -> dict[str, tuple[Column, ...]]:
    tables = {}
    for key, words in _COLUMNS.items():
        name, _, span = key.partition("@")
        first, _, last = span.partition("-")
        if _number(first or "none") <= version and (not last or version <= _number(last)):
            tables[name] = _columns(words, version)
    return tables


def _sync_numbers(version: tuple[int, ...]) -> SyncNumbers:
    if version >= (3, 25):
        return SyncNumbers(context=4, event=1, stream=3, wait=2)
    if version >= (3, 17):
        return SyncNumbers(context=4, event=1, stream=2, wait=2)
    if version >= (3, 13):
        return SyncNumbers(context=0, event=1, stream=2, wait=2)
    return SyncNumbers(context=1, event=2, stream=3, wait=3)


LAYOUTS = {
    schema: Layout(schema, product, _tables(_number(schema)), _sync_numbers(_number(schema)))
    for schema, product in _PRODUCTS.items()
}
"""Every version that the tests write, by its schema version."""
