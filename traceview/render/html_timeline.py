"""The section around a timeline's chart: which forward, a key to the colours, and its largest holes as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from traceview.analysis.timeline import What
from traceview.render import html_charts
from traceview.render.html_blocks import escaped, plain_table, slug, titled
from traceview.render.shown import shown
from traceview.render.verdict import PHRASES
from traceview.report import CATEGORIES
from traceview.units import count, counted, duration, milliseconds, percent

if TYPE_CHECKING:
    from traceview.analysis.timeline import Timeline
    from traceview.report import Forward

HOLES_LISTED = 10
CAUSE_SHOWN = 60
_BOX_WORDS = {
    What.LOAD: "load",
    What.COMPUTE: "compute",
    What.INPUT: "input",
    What.READBACK: "read back",
    What.WRITEBACK: "writeback",
    What.OTHER: "other operation",
    What.FOREIGN: "of no or another forward",
    What.CALL: "API call",
    What.BLOCKING: "blocking API call",
    What.RANGE: "NVTX range",
}
_KEYS = "Ctrl and the wheel or a pinch zooms, dragging pans. With the chart focused: ← → pan, + - zoom, 0 shows all"
_HOLE_KEYS = ", N and P go to the next and the previous largest hole"


def timeline_section(drawn: Timeline, data: dict[str, Any]) -> str:
    """Return the section of a timeline and add what its chart draws to ``data``."""
    title = f"Timeline: {drawn.title}"
    key = slug(title)
    data[key] = html_charts.timeline(drawn)
    forward = drawn.forward
    inner = [
        _which(forward) if forward else "",
        _amount(drawn),
        _legend(drawn),
        _boxes_legend(drawn),
        timeline_chart(drawn, key),
    ]
    if len(drawn.holes):
        inner.append(_largest_holes(drawn, key))
    return titled(title, "", "".join(inner))


def hole_words(drawn: Timeline, hole: int) -> str:
    """Return what a hole waited for, in the words of the accounting with the layer, operation, call or range named."""
    holes = drawn.holes
    category = CATEGORIES[int(holes.category[hole])]
    layer, cause = int(holes.layer[hole]), int(holes.cause[hole])
    named = shown(drawn.names[cause], CAUSE_SHOWN) if cause >= 0 else ""
    if category in ("load_copy", "load_gap"):
        pauses = ", which itself pauses" if category == "load_gap" else ""
        return f"the load of layer {layer}{pauses}" if layer >= 0 else f"its load{pauses}"
    joined = ", in " if category == "host" else ": "
    return f"{PHRASES[category]}{joined}{named}" if named else PHRASES[category]


def _which(forward: Forward) -> str:
    measures = forward.measures
    words = [f"makespan {milliseconds(measures.makespan_ns)} ms"]
    if measures.ideal_ns is not None:
        words.append(f"ideal {milliseconds(measures.ideal_ns)} ms")
    if measures.pipeline_efficiency is not None:
        words.append(f"efficiency {percent(measures.pipeline_efficiency)}")
    name = f'<code class="name"><bdi>{escaped(shown(forward.name, 60))}</bdi></code>'
    where = f"(index {forward.index}, process {forward.process}, GPU {forward.device})"
    return f"<p>{name} {where} · {' · '.join(words)}</p>"


def _amount(drawn: Timeline) -> str:
    """Return a note on what a box stands for where there are more things than boxes, and on rows left out."""
    notes = []
    if drawn.things > len(drawn.boxes):
        notes.append(
            f"{count(drawn.things)} operations, calls and ranges drawn as {count(len(drawn.boxes))} boxes: "
            "close neighbours of one kind and layer stand as one."
        )
    if drawn.rows_left_out:
        notes.append(
            f"{counted(drawn.rows_left_out, 'stream or thread', 'streams or threads')} with less work without a row."
        )
    return f'<p class="muted">{" ".join(notes)}</p>' if notes else ""


def _legend(drawn: Timeline) -> str:
    """Return the categories that this forward lost time to; they sum up to its makespan with ``compute``."""
    if drawn.forward is None:
        return ""
    accounting = drawn.forward.measures.accounting
    entries = [
        f'<li title="{escaped(PHRASES[name])}"><i class="swatch c-{name}"></i>{name} '
        f'<span class="muted" data-category="{name}" data-ns="{accounting[name]}">{milliseconds(accounting[name])} ms'
        "</span></li>"
        for name in CATEGORIES[1:]
        if accounting[name]
    ]
    return f'<ul class="legend" aria-label="Holes by category">{"".join(entries)}</ul>'


def _boxes_legend(drawn: Timeline) -> str:
    """Return the colours of boxes that are of no layer."""
    there = np.unique(drawn.boxes.what[(drawn.boxes.layer < 0) | (drawn.boxes.what >= What.CALL)]).tolist()
    entries = [f'<li><i class="swatch b-{What(what).name.lower()}"></i>{_BOX_WORDS[What(what)]}</li>' for what in there]
    return f'<ul class="legend muted" aria-label="Boxes">{"".join(entries)}</ul>' if entries else ""


def timeline_chart(drawn: Timeline, key: str) -> str:
    """Return the place of a timeline's chart with the buttons that move it; ``key`` says which data it draws."""
    rows = ", ".join(escaped(shown(row.label, 60)) for row in drawn.rows)
    keys = escaped(f"{_KEYS}{_HOLE_KEYS if len(drawn.holes) else ''}.")
    return (
        f'<figure class="chart timeline" id="chart-{key}"><div class="tools scripted" role="group" aria-label="View">'
        '<button type="button" data-do="in" aria-label="Zoom in">+</button>'
        '<button type="button" data-do="out" aria-label="Zoom out">&minus;</button>'
        '<button type="button" data-do="left" aria-label="Earlier">←</button>'
        '<button type="button" data-do="right" aria-label="Later">→</button>'
        '<button type="button" data-do="all">All</button>'
        f'<span class="drawn muted" aria-live="polite"></span></div>'
        f'<div class="canvas" data-chart="timeline" data-key="{key}" data-rows="{len(drawn.rows)}" tabindex="0" '
        f'role="application" aria-label="Timeline, rows: {rows}. {keys}"></div>'
        f'<figcaption class="muted scripted">{keys}</figcaption></figure>\n'
    )


def _largest_holes(drawn: Timeline, key: str) -> str:
    """Return the holes that cost most, each with a button that shows it in the chart."""
    holes = drawn.holes
    order = np.lexsort((holes.start, -holes.spent))[:HOLES_LISTED].tolist()
    heads = [
        '<th scope="col" class="right">at ms</th><th scope="col" class="right">length</th>',
        '<th scope="col">category</th><th scope="col" class="right minor">layer</th>',
        '<th scope="col" class="wraps">waits for</th><td class="scripted"></td>',
    ]
    return plain_table(heads, [_hole_row(drawn, hole, key) for hole in order], classes="holes", caption="Largest holes")


def _hole_row(drawn: Timeline, hole: int, key: str) -> str:
    holes = drawn.holes
    category = CATEGORIES[int(holes.category[hole])]
    layer, times = int(holes.layer[hole]), int(holes.count[hole])
    several = f" in {count(times)}" if times > 1 else ""
    return (
        f'<td class="right">{milliseconds(int(holes.start[hole]) - drawn.zero_ns)}</td>'
        f'<td class="right">{duration(int(holes.spent[hole]))}{several}</td>'
        f'<td><span class="category"><i class="swatch c-{category}"></i>{category}</span></td>'
        f'<td class="right minor">{layer if layer >= 0 else ""}</td>'
        f'<td class="wraps"><bdi>{escaped(hole_words(drawn, hole))}</bdi></td>'
        f'<td class="scripted"><button type="button" data-show="{key}" data-hole="{hole}">show</button></td>'
    )
