"""The same scene in every layout gives the same report, and a table or column less never gives a wrong number."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from export_writer import change
from fuzz_scenes import everything
from layouts import LAYOUTS

import traceview
from traceview.analysis.checklist import check
from traceview.analysis.report import ReportOptions, build_report
from traceview.errors import InputError
from traceview.render.json import as_dict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NEWEST = "3.28.1"
ABOUT_THE_FILE = ("trace", "abstained")
EDITS = ("coalesce", "pin", "no-sync", "own-stream")


def report_on(path: Path) -> dict[str, Any]:
    """Return everything that can be reported on a trace."""
    made = build_report(traceview.read(path, metrics=True), ReportOptions(what_if=EDITS))
    return as_dict(replace(made, checklist=check(made)))


def values_of(report: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each value with its place; a row of a list is placed by what identifies it, not by its number."""
    if isinstance(report, dict):
        for key, value in report.items():
            if place or key not in ABOUT_THE_FILE:
                yield from values_of(value, f"{place}.{key}")
    elif isinstance(report, list):
        for row in report:
            yield from values_of(row, f"{place}[{identity(row)}]")
    else:
        yield place, report


def identity(row: Any) -> str:
    """Return what tells a row from the others of its list."""
    if not isinstance(row, dict):
        return str(row)
    known = (
        "scope",
        "process",
        "device",
        "index",
        "layer",
        "a",
        "b",
        "api",
        "kind",
        "forward",
        "range",
        "class",
        "with",
    )
    words = (*known, "direction", "mover", "nic", "port", "stream", "id", "question", "name", "edits", "cause")
    return " ".join(f"{word}={row[word]}" for word in words if word in row and word != "memory")


def differences(base: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return what both reports say, but not alike, by its place; and under ``gone`` how many places are in one only."""
    before, after = dict(values_of(base)), dict(values_of(other))
    return {
        place: (before[place], after[place]) for place in before.keys() & after.keys() if before[place] != after[place]
    }


def lost(base: dict[str, Any], other: dict[str, Any]) -> set[str]:
    """Return the places of which only one of two reports says anything."""
    return dict(values_of(base)).keys() ^ dict(values_of(other)).keys()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], bytes]:
    path = everything(NEWEST).write(tmp_path_factory.mktemp("whole") / "trace.sqlite")
    return report_on(path), path.read_bytes()


def sections(places: set[str] | dict[str, Any]) -> set[str]:
    return {place.split("[")[0].split(".")[1] for place in places}


LACKS = {
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": {"overlap"},
    "NIC_ID_MAP": {"network"},
    "NET_NIC_METRIC": {"network"},
    "migrationCause": {"migrations"},
    "callchainId": {"syncs"},
}
"""What some layouts have no table or column for, and the sections that say less for it."""


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_same_scene_is_the_same_report_in_every_layout(
    layout: str, tmp_path: Path, whole: tuple[dict[str, Any], bytes]
) -> None:
    found = report_on(everything(layout).write(tmp_path / "trace.sqlite"))
    has = LAYOUTS[layout].has
    lacking = {
        what: told
        for what, told in LACKS.items()
        if not has(what) and not any(has(table, what) for table in LAYOUTS[NEWEST].tables)
    }
    allowed = set().union(*lacking.values()) if lacking else set()
    assert sections(differences(whole[0], found)) | sections(lost(whole[0], found)) <= allowed
    for key in ("forwards", "summary", "copies", "findings", "storage", "what_if"):
        assert found[key] == whole[0][key], key


ALL = [(table, None) for table in LAYOUTS[NEWEST].tables]
ALL += [(table, column.name) for table, columns in LAYOUTS[NEWEST].tables.items() for column in columns]

TOLD_IN_WORDS = {
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "dstKind"): "the memory of the copies out is 'unknown'",
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "migrationCause"): "the cause is 'unknown'",
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "srcDeviceId"): "the link of the peer copies ends at 'GPU ?'",
    ("CUPTI_ACTIVITY_KIND_MEMCPY", "dstDeviceId"): "the link of the peer copies ends at 'GPU ?'",
    ("TARGET_INFO_GPU", None): "the name is null",
    ("TARGET_INFO_GPU", "id"): "the name is null",
    ("TARGET_INFO_GPU", "name"): "the name is null",
    ("TARGET_INFO_NIC_INFO", None): "the NIC is named by its id",
    ("TARGET_INFO_NIC_INFO", "nicId"): "the NIC is named by its id",
    ("TARGET_INFO_NIC_INFO", "name"): "the NIC is named by its id",
    ("NIC_ID_MAP", None): "the NIC is named by its id",
    ("NIC_ID_MAP", "nicId"): "the NIC is named by its id",
    ("NIC_ID_MAP", "globalId"): "the NIC is named by its id",
}
"""Where something is less known and the value itself says so."""

NOTHING_MISSED = {
    (
        "CUPTI_ACTIVITY_KIND_MEMSET",
        None,
    ): "memsets are listed where there are some; the trace's own list names the rest",
}
"""Where rows are gone that nobody can know of."""

ZEROS = {
    ("CUPTI_ACTIVITY_KIND_MEMCPY", None): ("load_copy", "load_gap", "stall_ns", "hidden_ns"),
    # launches of whole graphs, which are left, are compute too: a program may launch nothing else
    ("CUPTI_ACTIVITY_KIND_KERNEL", None): ("overlap_ns", "ratio"),
}
"""What sums to the makespan or is a fact of what is left, so that it becomes 0; an abstention names it."""


@pytest.mark.parametrize(("table", "column"), ALL, ids=lambda one: str(one))
def test_a_table_or_column_less_is_refused_by_name_or_abstained_or_changes_nothing(
    table: str, column: str | None, tmp_path: Path, whole: tuple[dict[str, Any], bytes]
) -> None:
    base, content = whole
    path = tmp_path / "trace.sqlite"
    path.write_bytes(content)
    statement = f'DROP TABLE "{table}"' if column is None else f'ALTER TABLE "{table}" DROP COLUMN "{column}"'
    try:
        change(path, statement)
    except sqlite3.OperationalError as error:
        assert "no such table" in str(error) or "cannot drop PRIMARY KEY" in str(error)  # noqa: PT017
        return
    try:
        found = report_on(path)
    except InputError as refused:
        assert f"table {table} has no column {column}" in refused.message  # noqa: PT017
        return
    changed = differences(base, found)
    zeros = {place.rpartition(".")[2] for place, (before, after) in changed.items() if before and after == 0}
    assert zeros <= set(ZEROS.get((table, column), ()))
    new = [one for one in found["abstained"] if one not in base["abstained"]]
    if changed or lost(base, found):
        assert new or (table, column) in TOLD_IN_WORDS or (table, column) in NOTHING_MISSED, changed


def test_the_whole_scene_says_something_of_everything(whole: tuple[dict[str, Any], bytes]) -> None:
    """Otherwise a column could be missing that nobody misses."""
    report = whole[0]
    empty = {name for name, section in report.items() if not section}
    assert empty <= {"findings", "inbound"}
