"""A measure over saved runs as a picture: every forward as a dot, medians as a line, runs by commit or label."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from traceview.analysis.compare_measures import MEASURES, Key
from traceview.render.history import title
from traceview.render.shown import shown

if TYPE_CHECKING:
    from traceview.analysis.compare_history import Followed

_SCALES = {"ns": (1e6, "ms"), "ratio": (0.01, "%"), "rate": (1.0, "GB/s"), "count": (1.0, "")}
_INK, _PALE, _BAD = "#1f4e79", "#9db8d2", "#b3261e"


def picture(followed: Followed, kind: str) -> bytes:
    """Return the picture as a file of its kind: ``png``, ``svg`` or ``pdf``; regressed runs are red."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scale, unit = _SCALES[MEASURES[followed.measure].unit]
    key = Key(followed.measure, followed.subject)
    figure = Figure(figsize=(max(6.4, 0.5 * len(followed.points)), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    medians = [point.row.new.median / scale if point.row.new else 0.0 for point in followed.points]
    for at, point in enumerate(followed.points):
        values = [sample.values[key] / scale for sample in point.run.samples if key in sample.values]
        axes.plot([at] * len(values), values, "o", color=_PALE, markersize=3, zorder=1)
    axes.plot(range(len(medians)), medians, "-", color=_INK, zorder=2)
    colours = [_BAD if point.row.verdict == "regressed" else _INK for point in followed.points]
    axes.scatter(range(len(medians)), medians, c=colours, zorder=3)
    axes.set_ylim(bottom=0)
    axes.set_ylabel(f"{title(followed)}{f', {unit}' if unit else ''}")
    names = [(point.run.commit or point.run.label)[:9] for point in followed.points]
    axes.set_xticks(range(len(names)), [shown(text or "-", 12).replace("$", r"\$") for text in names], rotation=45)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
    output = io.BytesIO()
    figure.savefig(output, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return output.getvalue()
