"""The overlap of the classes of work as a matrix: a table that reads without colour."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview.render.html_blocks import escaped, plain_table
from traceview.render.layout_overlap import CLASSES
from traceview.units import duration, percent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report import Overlap, Report

MATRICES_SHOWN = 4
_SHADES = 5


def overlap_matrices(report: Report) -> str:
    """Return one table for each device on which classes of work ran side by side; nothing where none did."""
    pairs = [pair for pair in report.overlap if pair.scope == "trace" and pair.a in CLASSES and pair.b in CLASSES]
    places = list(dict.fromkeys((pair.process, pair.device) for pair in pairs))
    several = len({process for process, _ in places}) > 1
    tables = []
    for process, device in places[:MATRICES_SHOWN]:
        here = [pair for pair in pairs if (pair.process, pair.device) == (process, device)]
        title = f"GPU {device}" + (f", process {process}" if several else "")
        tables.append(_matrix(here, f"{title}: share of the shorter one that runs beside the other"))
    return f'<div class="matrices">{"".join(tables)}</div>' if tables else ""


def _matrix(pairs: Sequence[Overlap], caption: str) -> str:
    present = [name for name in CLASSES if any(name in (pair.a, pair.b) for pair in pairs)]
    by_pair = {frozenset((pair.a, pair.b)): pair for pair in pairs}
    heads = ["<td></td>", *(f'<th scope="col">{escaped(name)}</th>' for name in present)]
    rows = []
    for name in present:
        cells = [_cell(by_pair.get(frozenset((name, other))), name == other) for other in present]
        rows.append(f'<th scope="row">{escaped(name)}</th>{"".join(cells)}')
    return plain_table(heads, rows, classes="matrix", caption=caption)


def _cell(pair: Overlap | None, same: bool) -> str:
    if same:
        return '<td class="same">·</td>'
    if pair is None:
        return "<td></td>"
    shade = min(_SHADES - 1, int(pair.ratio * _SHADES))
    both = f"{duration(pair.overlap_ns)} both, {pair.a} {duration(pair.busy_a_ns)}, {pair.b} {duration(pair.busy_b_ns)}"
    return f'<td class="o{shade}" title="{escaped(both)}" data-ns="{pair.overlap_ns}">{percent(pair.ratio)}</td>'
