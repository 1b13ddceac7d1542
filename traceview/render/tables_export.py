"""Writes exported tables as CSV or Parquet files, with a README that says what each column is."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from traceview import __version__
from traceview.analysis.export_columns import EXPORTED
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traceview.analysis.export_columns import ExportedTable

    Tables = Mapping[str, Mapping[str, Any]]

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A cell of text that begins with one of these is run as a formula by spreadsheets (OWASP: CSV injection)."""


def as_csv(tables: Tables, source: str) -> dict[str, bytes]:
    """Return the files by name: one CSV per table in UTF-8 and a README; ``source`` names the trace.

    Text that a spreadsheet would run as a formula gets an apostrophe before it; what is unknown is an empty cell.
    """
    files = {f"{name}.csv": _csv(tables[name], table) for name, table in EXPORTED.items()}
    return files | {"README.md": _readme("csv", source)}


def as_parquet(tables: Tables, source: str) -> dict[str, bytes]:
    """Return the files by name: one Parquet file per table, unit and meaning in each field's metadata, and a README.

    Raises ``UsageError`` where pyarrow is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UsageError("Parquet needs pyarrow", "pip install 'traceview[parquet]', or use --to csv") from None
    types = {"int64": pa.int64(), "float64": pa.float64(), "bool": pa.bool_(), "text": pa.string()}
    files = {}
    for name, table in EXPORTED.items():
        arrays, fields = [], []
        for column in table.columns:
            values = _values(tables[name][column.name], column.kind)
            arrays.append(pa.array(values, type=types[column.kind]))
            about = {"unit": column.unit, "description": column.about}
            fields.append(pa.field(column.name, types[column.kind], metadata=about))
        schema = pa.schema(fields, metadata={"description": table.about, "traceview": __version__})
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), sink, compression="zstd")
        files[f"{name}.parquet"] = sink.getvalue()
    return files | {"README.md": _readme("parquet", source)}


def _csv(columns: Mapping[str, Any], table: ExportedTable) -> bytes:
    names = [column.name for column in table.columns]
    cells = [_cells(columns[column.name], column.kind) for column in table.columns]
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(zip(*cells, strict=True))
    return target.getvalue().encode("utf-8", "replace")


def _cells(values: Any, kind: str) -> list[Any]:
    listed = _values(values, kind)
    write = _WRITE.get(kind)
    return ["" if value is None else write(value) if write else value for value in listed]


def _values(values: Any, kind: str) -> list[Any]:
    """Return a column as plain values of its kind; half surrogates, which no file can hold, become ``?``."""
    listed: list[Any] = values.tolist() if hasattr(values, "tolist") else list(values)
    if kind == "text":
        return [None if value is None else str(value).encode("utf-8", "replace").decode() for value in listed]
    return listed


def _text(value: str) -> str:
    # csv quotes line breaks, but NUL ends a cell in many readers
    clean = value.replace("\0", "")
    return f"'{clean}" if clean.startswith(_FORMULA) else clean


_WRITE: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "bool": lambda value: "true" if value else "false",
    "float64": repr,
}


def _readme(ending: str, source: str) -> bytes:
    lines = [
        f"# Tables of {source}",
        "",
        f"Written by traceview {__version__}. Times are integer ns on the trace's own timeline.",
        "An empty cell is unknown.",
    ]
    for name, table in EXPORTED.items():
        lines += [
            "",
            f"## {name}.{ending}",
            "",
            table.about,
            "",
            "| column | type | unit | meaning |",
            "|---|---|---|---|",
        ]
        lines += [f"| {one.name} | {one.kind} | {one.unit} | {one.about} |" for one in table.columns]
    return ("\n".join(lines) + "\n").encode()
