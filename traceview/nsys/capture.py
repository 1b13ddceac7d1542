"""What an export says about itself: versions, devices, graph mode, the profiler's own complaints, recorded facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from instrument.naming import DOMAIN, FACTS_PREFIX
from traceview.model import Capture, KeptForwards
from traceview.nsys import contents, schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.nsys.database import Database

_VERSION_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")
_GPU_TABLES = ("TARGET_INFO_GPU", "TARGET_INFO_CUDA_GPU")
_NO_TEXT = "''"
_DOUBTS = ("Not all ", "not have been started correctly", "dropped", "is not supported", "incomplete")


_DEEPEST = 32


def read_capture(database: Database, devices: set[int], processes: set[int]) -> Capture:
    """Return the trace's description; ``devices`` and ``processes`` are those that its rows name."""
    versions = _meta(database, _VERSION_TABLES)
    held, lacking = contents.present(database)
    names = _gpu_names(database)
    described = _meta(database, ("META_DATA_CAPTURE",))
    mode = next((value for name, value in described.items() if name.endswith("CUDA_GRAPH_TRACE_OPTIONS:MODE")), None)
    return Capture(
        path=database.path,
        product_version=versions.get("EXPORT_PRODUCT_VERSION"),
        schema_version=versions.get("EXPORT_SCHEMA_VERSION"),
        devices={device: names.get(device) for device in sorted(devices)},
        processes=tuple(sorted(processes)),
        captured=held,
        missing=lacking,
        graph_mode=mode.lower() if mode else None,
        diagnostics=_diagnostics(database),
        facts=_facts(database),
        kept=_kept_forwards(described),
        session_start_ns=_session_start(database),
    )


def _meta(database: Database, tables: tuple[str, ...]) -> dict[str, str]:
    table = next((name for name in tables if {"name", "value"} <= database.tables.get(name, frozenset())), None)
    if table is None:
        return {}
    query = f'SELECT name, value FROM "{table}" ORDER BY name, value'  # noqa: S608
    return {str(name).upper(): str(value) for name, value in database.rows(query)}


def _session_start(database: Database) -> int | None:
    """Return when the capture's session began, in ns of UTC; times of events count from there."""
    if "utcEpochNs" not in database.tables.get("TARGET_INFO_SESSION_START_TIME", frozenset()):
        return None
    rows = database.rows("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME")
    return next((epoch for (epoch,) in rows if isinstance(epoch, int) and epoch > 0), None)


def _kept_forwards(described: Mapping[str, str]) -> KeptForwards | None:
    """Return which forwards a slimmed export says it holds, or None."""
    first = described.get(f"{schema.SLIM_KEY}FIRST_FORWARD", "")
    warmup = described.get(f"{schema.SLIM_KEY}WARMUP", "").split(",")
    if not _is_index(first) or not all(_is_index(number) or not number for number in warmup):
        return None
    return KeptForwards(int(first), tuple(int(number) for number in warmup if number))


def _is_index(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10


def _gpu_names(database: Database) -> dict[int, str]:
    """Return GPU names by the device id that processes use; the file's own ids where it maps none."""
    table = next((name for name in _GPU_TABLES if name in database.tables), _GPU_TABLES[0])
    columns = database.tables.get(table, frozenset())
    identity = next((name for name in ("id", "deviceId") if name in columns), None)
    if identity is None or "name" not in columns:
        return {}
    rows = database.rows(f"SELECT {identity}, name FROM {table}")  # noqa: S608
    by_gpu = {number: str(name) for number, name in rows if name is not None}
    if {"gpuId", "cudaId"} <= database.tables.get("TARGET_INFO_CUDA_DEVICE", frozenset()):
        mapped = database.rows("SELECT cudaId, gpuId FROM TARGET_INFO_CUDA_DEVICE ORDER BY cudaId, gpuId DESC")
        return {device: by_gpu[gpu] for device, gpu in mapped if gpu in by_gpu} or by_gpu
    return by_gpu


def _diagnostics(database: Database) -> tuple[str, ...]:
    if "text" not in database.tables.get("DIAGNOSTIC_EVENT", frozenset()):
        return ()
    time = "timestamp, " if "timestamp" in database.tables["DIAGNOSTIC_EVENT"] else ""
    texts = (str(row[0]) for row in database.rows(f"SELECT text FROM DIAGNOSTIC_EVENT ORDER BY {time}text"))  # noqa: S608
    return tuple(dict.fromkeys(text for text in texts if any(doubt in text for doubt in _DOUBTS)))


def _facts(database: Database) -> Mapping[str, Any] | None:
    """Return the facts that the first facts mark carries, or None."""
    text = nvtx_text(database)
    if text is None:
        return None
    domains = {domain for _, domain, name in domain_rows(database) if name == DOMAIN}
    if not domains:
        return None
    # the mark's text is long, so it may be stored either way: compare the prefix after both are joined
    query = (
        f"SELECT n.domainId, {text} AS words FROM NVTX_EVENTS AS n {string_join(database)} "  # noqa: S608
        "WHERE n.eventType = ? AND words LIKE ? ORDER BY n.start, words"
    )
    for domain, words in database.rows(query, (schema.NVTX_MARK, f"{FACTS_PREFIX}{{%")):
        if domain not in domains:
            continue
        try:
            facts = json.loads(words[len(FACTS_PREFIX) :])
        except (ValueError, RecursionError):
            continue
        if isinstance(facts, dict) and _is_shallow(facts):
            return facts
    return None


def _is_shallow(facts: object) -> bool:
    """Return whether facts nest no deeper than anybody writes them; what draws them walks down."""
    level = [facts]
    for _ in range(_DEEPEST):
        inner = [one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list)]
        level = [value for values in inner for value in values]
    return not level


def nvtx_text(database: Database) -> str | None:
    """Return the SQL for an NVTX event's text (event ``n``, joined string ``s``), or None without such a table."""
    columns = database.tables.get(schema.NVTX_TABLE, frozenset())
    if "text" not in columns and "textId" not in columns:
        return None
    stored = [sql for name, sql in (("text", "n.text"), ("textId", "s.value")) if name in columns]
    if "textId" in columns and "StringIds" not in database.tables:
        stored = stored[:-1]
    return f"COALESCE({', '.join([*stored, _NO_TEXT, _NO_TEXT])})"


def string_join(database: Database) -> str:
    """Return the SQL that joins an NVTX event ``n`` with its registered string ``s`` where there can be one."""
    joinable = "textId" in database.tables[schema.NVTX_TABLE] and "StringIds" in database.tables
    return "LEFT JOIN StringIds AS s ON s.id = n.textId" if joinable else ""


def domain_rows(database: Database) -> list[tuple[int, int, str]]:
    """Return (globalTid, domain id, name) of each NVTX domain."""
    text = nvtx_text(database)
    if text is None or "domainId" not in database.tables[schema.NVTX_TABLE]:
        return []
    query = (
        f"SELECT n.globalTid, n.domainId, {text} FROM NVTX_EVENTS AS n {string_join(database)} WHERE n.eventType = ?"  # noqa: S608
    )
    rows = database.rows(query, (schema.NVTX_DOMAIN,))
    return [(tid or 0, number, str(name)) for tid, number, name in rows if _is_id(tid or 0) and _is_id(number)]


def _is_id(value: object) -> bool:
    return isinstance(value, int)
