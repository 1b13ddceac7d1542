"""The exported tables as files that other tools read."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

import pytest
from drawn_scenes import eight_layers, hostile_names
from trace_builder import TraceBuilder

from traceview.analysis.export_columns import EXPORTED
from traceview.analysis.export_tables import export_tables
from traceview.analysis.report import ReportOptions, build_report
from traceview.reading import read
from traceview.render.tables_export import as_csv, as_parquet
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def bare(path: Path) -> Path:
    return TraceBuilder().kernel(10, 20).write(path)


def tables_of(path: Path) -> dict[str, dict[str, Any]]:
    trace = read(path)
    return export_tables(trace, ReportOptions().forwards, build_report(trace))


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline="")))


@pytest.mark.parametrize("scene", [eight_layers, hostile_names, bare])
def test_every_documented_column_is_there_and_no_other(scene: Callable[[Path], Path], tmp_path: Path) -> None:
    tables = tables_of(scene(tmp_path / "scene.sqlite"))
    assert list(tables) == list(EXPORTED)
    for name, table in EXPORTED.items():
        assert sorted(tables[name]) == sorted(column.name for column in table.columns), name
        assert len({len(values) for values in tables[name].values()}) == 1, name


@pytest.mark.parametrize("scene", [eight_layers, hostile_names, bare])
def test_both_formats_hold_the_same_rows(scene: Callable[[Path], Path], tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'traceview[test]'")
    tables = tables_of(scene(tmp_path / "scene.sqlite"))
    written, columns = as_csv(tables, "scene.sqlite"), as_parquet(tables, "scene.sqlite")
    assert [name.removesuffix(".csv") for name in written] == [name.removesuffix(".parquet") for name in columns]
    for name, table in EXPORTED.items():
        read_back = pq.read_table(io.BytesIO(columns[f"{name}.parquet"]))
        rows = rows_of(written[f"{name}.csv"])
        assert read_back.num_rows == len(rows)
        for column in table.columns:
            field = read_back.schema.field(column.name)
            assert field.metadata == {b"unit": column.unit.encode(), b"description": column.about.encode()}
            values = read_back.column(column.name).to_pylist()
            if column.kind == "int64":
                assert [row[column.name] for row in rows] == ["" if one is None else str(one) for one in values]
            elif column.kind == "float64":
                assert [float(row[column.name]) if row[column.name] else None for row in rows] == values


def test_holes_and_compute_sum_up_to_each_makespan(tmp_path: Path) -> None:
    files = as_csv(tables_of(eight_layers(tmp_path / "eight.sqlite")), "eight.sqlite")
    forwards = rows_of(files["forwards.csv"])
    assert len(forwards) == 3
    for forward in forwards:
        own = [hole for hole in rows_of(files["holes.csv"]) if hole["forward"] == forward["index"]]
        idle = sum(int(hole["end_ns"]) - int(hole["start_ns"]) for hole in own)
        assert idle + int(forward["compute_ns"]) == int(forward["makespan_ns"])
        assert sum(int(forward[f"{name}_ns"]) for name in CATEGORIES) == int(forward["makespan_ns"])


def test_operations_say_which_layer_they_load_or_compute(tmp_path: Path) -> None:
    files = as_csv(tables_of(eight_layers(tmp_path / "eight.sqlite")), "eight.sqlite")
    operations, calls = rows_of(files["operations.csv"]), rows_of(files["calls.csv"])
    loads = [one for one in operations if one["role"] == "load" and one["forward"] == "1"]
    assert [one["layer"] for one in loads] == [str(layer) for layer in range(8)]
    assert {(one["kind"], one["direction"], one["memory"], one["bytes"]) for one in loads} == {
        ("copy", "h2d", "pinned", str(64 << 20))
    }
    assert {calls[int(one["call"])]["name"] for one in loads} == {"cudaMemcpyAsync"}


def test_no_cell_runs_as_a_formula(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for at, name in enumerate(("=1+1", "+cmd|' /C calc'!A0", "-2", "@SUM(A1)", "\t=1", "safe = 1")):
        builder.range(name, 100 * at, 100 * at + 50)
    path = builder.kernel(10, 20, call=(1, 2)).write(tmp_path / "formulas.sqlite")
    names = [row["name"] for row in rows_of(as_csv(tables_of(path), "x")["ranges.csv"])]
    assert names == ["'=1+1", "'+cmd|' /C calc'!A0", "'-2", "'@SUM(A1)", "'\t=1", "safe = 1"]


def test_the_readme_lists_every_column_with_its_unit(tmp_path: Path) -> None:
    readme = as_csv(tables_of(bare(tmp_path / "bare.sqlite")), "bare.sqlite")["README.md"].decode()
    for name, table in EXPORTED.items():
        assert f"## {name}.csv" in readme
        for column in table.columns:
            assert f"| {column.name} | {column.kind} | {column.unit} | {column.about} |" in readme
