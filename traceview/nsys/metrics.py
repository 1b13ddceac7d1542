"""Reads sampled counters: PCIe traffic of the GPUs, RDMA traffic of the NICs.

The table of GPU metrics is by far the largest of an export, so only the two PCIe counters are read, and only when asked
for. The tables of NIC metrics are small.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from traceview.model import LinkSamples, NicSamples, Samples
from traceview.nsys import schema
from traceview.nsys.columns import read_columns
from traceview.nsys.order import time_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from traceview.model import Flags, Ints
    from traceview.nsys.database import Database

    Table = dict[str, Ints]
    Series = dict[tuple[int, str], tuple[Ints, Ints]]
    """(times, values) by the machine's number of the GPU and ``rx`` or ``tx``"""

_PCIE = re.compile(r"pcie (?P<way>rx|read|tx|write)\b(?!.*requests)", re.IGNORECASE)
_WAYS = {"rx": "rx", "read": "rx", "tx": "tx", "write": "tx"}
_RDMA = re.compile(r"(?:ib|rdma|roce)\s*:\s*bytes (?P<way>received|sent)", re.IGNORECASE)
_UNIT = re.compile(r"(?P<scale>[kmg]i?)?\s*b(?:ytes?)?(?:\s*/\s*(?P<per>ns|us|ms|s|sec|second))?", re.IGNORECASE)
_SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "sec": 10**9, "second": 10**9}
_GPU_MASK = 0xFF
"""The low byte of a counter's type is the machine's number of the GPU."""


def read_link_samples(database: Database) -> tuple[LinkSamples, ...]:
    """Return the PCIe counters of each GPU that was sampled, by the device ids that processes use.

    Samples from before the capture began (below 0) are dropped, values outside of 0 to 100 percent clamped.
    """
    series = _from_metrics(database) or _from_generic_events(database)
    nothing = np.empty(0, dtype=np.int64)
    found = []
    for gpu in sorted({gpu for gpu, _ in series}):
        received, sent = (_samples(*series.get((gpu, way), (nothing, nothing))) for way in ("rx", "tx"))
        found += [LinkSamples(device, received, sent) for device in _devices_of(database, gpu)]
    return tuple(sorted(found, key=lambda one: one.device))


def read_nic_samples(database: Database) -> tuple[NicSamples, ...]:
    """Return the RDMA bytes that each NIC port received and sent, sample by sample; none where none were sampled."""
    counters = _rdma_counters(database)
    if not counters:
        return ()
    table = read_columns(database, schema.NIC_METRICS)
    names = _nic_names(database)
    found = []
    for place in sorted(set(zip(table["nic"].tolist(), table["port"].tolist(), strict=True))):
        own = (table["nic"] == place[0]) & (table["port"] == place[1])
        for (metrics_list, index), (direction, scale, per_ns) in sorted(counters.items()):
            rows = np.flatnonzero(own & (table["list"] == metrics_list) & (table["index"] == index))
            start, end, value = (table[name][rows] for name in ("start", "end", "value"))
            order = np.lexsort((value, end, start))
            start, end, value = start[order], end[order], value[order]
            n_bytes = value * scale * ((end - start) * per_ns if per_ns else 1)
            kept = (end > start) & (value >= 0)
            if kept.any():
                name = names.get(place[0], str(place[0]))
                rounded = np.round(n_bytes[kept]).astype(np.int64)
                found.append(NicSamples(name, place[1], direction, Samples(start[kept], end[kept], rounded)))
    return tuple(found)


def _samples(time: Ints, value: Ints) -> Samples:
    """Return a counter's samples in time order; each value is the mean since the sample before it."""
    kept = time >= 0
    time, value = time[kept], value[kept]
    order = time_order(time, lambda rows: (value[rows],))
    if order is not None:
        time, value = time[order], value[order]
    value = np.clip(value, 0, 100)
    if len(time) < 2:
        return Samples(time[:0], time[:0], value[:0])
    return Samples(time[:-1], time[1:], value[1:])


def _from_metrics(database: Database) -> Series:
    counters = _pcie_counters(database)
    if not counters:
        return {}
    types, metrics = (np.array(sorted({key[place] for key in counters}), dtype=np.int64) for place in (0, 1))

    def wanted(table: Table) -> Flags:
        kept: Flags = np.isin(table["metric"], metrics) & np.isin(table["type"], types)
        return kept

    table = read_columns(database, _timed_source(database), wanted)
    series: Series = {}
    for (kind, metric), way in sorted(counters.items()):
        own = (table["type"] == kind) & (table["metric"] == metric)
        if own.any():
            series[kind & _GPU_MASK, way] = (table["time"][own], table["value"][own])
    return series


def _timed_source(database: Database) -> schema.Source:
    """Return the source of GPU metrics with the time column that the export has."""
    source = schema.GPU_METRICS
    if "timestamp" in database.tables.get("GPU_METRICS", frozenset()):
        return source
    return replace(source, fields={**source.fields, "time": schema.column("rawTimestamp")})


def _pcie_counters(database: Database) -> dict[tuple[int, int], str]:
    """Return which (type, metric) counts PCIe traffic, and which way."""
    if not {"typeId", "metricId", "metricName"} <= database.tables.get(schema.GPU_COUNTERS_TABLE, frozenset()):
        return {}
    samples = database.tables.get("GPU_METRICS", frozenset())
    if not {"typeId", "metricId", "value"} <= samples or not {"timestamp", "rawTimestamp"} & samples:
        return {}
    rows = database.rows(f"SELECT typeId, metricId, metricName FROM {schema.GPU_COUNTERS_TABLE}")  # noqa: S608
    return {(kind, metric): way for kind, metric, name in rows if _numbers(kind, metric) and (way := _way(name))}


def _numbers(*values: object) -> bool:
    return all(isinstance(value, int) for value in values)


def _way(name: object) -> str | None:
    found = _PCIE.match(str(name))
    return _WAYS[found["way"].lower()] if found else None


def _from_generic_events(database: Database) -> Series:
    """Return the counters of older exports, which hold one JSON object of all counters a sample."""
    columns = database.tables.get("GENERIC_EVENTS", frozenset())
    if not {"typeId", "data"} <= columns or not {"rawTimestamp", "timestamp"} & columns:
        return {}
    time = "timestamp" if "timestamp" in columns else "rawTimestamp"
    series: Series = {}
    for kind, key, way in _generic_counters(database):
        value = "CASE WHEN json_valid(data) THEN CAST(json_extract(data, ?) AS INTEGER) END"
        query = f"SELECT {time}, {value} FROM GENERIC_EVENTS WHERE typeId = ?"  # noqa: S608
        sampled = database.rows(query, (f'$."{key}"', kind))
        rows = np.array([row for row in sampled if _numbers(*row)], dtype=np.int64).reshape(-1, 2)
        series[kind & _GPU_MASK, way] = (rows[:, 0], rows[:, 1])
    return series


def _generic_counters(database: Database) -> Iterator[tuple[int, str, str]]:
    """Yield (type, key in the JSON object, ``rx`` or ``tx``) of each PCIe counter, judged by the first sample."""
    for (kind,) in database.rows("SELECT DISTINCT typeId FROM GENERIC_EVENTS WHERE typeof(typeId) = 'integer'"):
        query = (
            "SELECT keys.key FROM (SELECT data FROM GENERIC_EVENTS WHERE typeId = ? AND json_valid(data) LIMIT 1) "
            "AS first, json_each(first.data) AS keys"
        )
        for (key,) in database.rows(query, (kind,)):
            way = _way(key)
            if way and '"' not in key:
                yield kind, key, way


def _devices_of(database: Database, gpu: int) -> Iterable[int]:
    """Return the device ids under which processes use a GPU of the machine; its own number where the file maps none."""
    if not {"gpuId", "cudaId"} <= database.tables.get("TARGET_INFO_CUDA_DEVICE", frozenset()):
        return (gpu,)
    mapped = database.rows("SELECT DISTINCT cudaId FROM TARGET_INFO_CUDA_DEVICE WHERE gpuId = ?", (gpu,))
    return [device for (device,) in mapped if _numbers(device)]


def _rdma_counters(database: Database) -> Mapping[tuple[int, int], tuple[str, float, float]]:
    """Return by (list, index) the direction of an RDMA counter, bytes per unit, and 1 / ns where the unit is a rate."""
    needed = {"metricsListId", "metricsIdx", "name", "unit"}
    table = schema.NIC_COUNTERS_TABLE
    samples = {name for field in schema.NIC_METRICS.fields.values() for name in field.columns}
    if not needed <= database.tables.get(table, frozenset()) or not samples <= database.tables.get(
        "NET_NIC_METRIC", frozenset()
    ):
        return {}
    counters = {}
    for metrics_list, index, name, unit in database.rows(f"SELECT metricsListId, metricsIdx, name, unit FROM {table}"):  # noqa: S608
        counter, written = _RDMA.match(str(name)), _UNIT.fullmatch(str(unit).strip())
        if counter and written and _numbers(metrics_list, index):
            direction = "receive" if counter["way"].lower() == "received" else "send"
            per_ns = 1 / _NS[written["per"].lower()] if written["per"] else 0.0
            counters[metrics_list, index] = (direction, float(_SCALES[(written["scale"] or "").lower()]), per_ns)
    return counters


def _nic_names(database: Database) -> dict[int, str]:
    """Return the name of each NIC by the id that its samples carry."""
    if not {"nicId", "name"} <= database.tables.get("TARGET_INFO_NIC_INFO", frozenset()):
        return {}
    names = {nic: str(name) for nic, name in database.rows("SELECT nicId, name FROM TARGET_INFO_NIC_INFO")}
    if {"nicId", "globalId"} <= database.tables.get("NIC_ID_MAP", frozenset()):
        mapped = database.rows("SELECT globalId, nicId FROM NIC_ID_MAP")
        return {place: names[nic] for place, nic in mapped if nic in names}
    return names
