"""A comparison as one HTML file: the answer, both median forwards under each other on one time axis, what changed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from traceview.analysis.compare import IMPROVED, REGRESSED
from traceview.analysis.timeline_pair import under_each_other
from traceview.render import html_charts
from traceview.render.diff_headline import summary
from traceview.render.diff_layout import layout
from traceview.render.html import contents, header
from traceview.render.html_blocks import escaped, plain_table, section, titled
from traceview.render.html_document import document
from traceview.render.html_timeline import timeline_chart
from traceview.render.shown import shown
from traceview.report import CATEGORIES
from traceview.units import milliseconds

if TYPE_CHECKING:
    from traceview.analysis.compare import Comparison
    from traceview.analysis.timeline import Timeline
    from traceview.report import Forward

_KEY = "timeline-base-and-new"
_LAYER = re.compile(r"layer (\d+)")
_WHATS = {"layer_load_busy_ns": "load", "layer_compute_busy_ns": "compute", "layer_stall_ns": "compute"}


def render(
    comparison: Comparison, base: Timeline | None = None, new: Timeline | None = None, *, only_changed: bool = False
) -> str:
    """Return the page of a comparison; ``base`` and ``new`` are the timelines of a forward of each side.

    Layers whose load, compute or stall the comparison found changed are framed in the new forward.
    """
    page = layout(comparison, only_changed=only_changed)
    data: dict[str, Any] = {"palette": html_charts.palette()}
    body = [section(one) for one in page.sections]
    if base is not None and new is not None:
        body.insert(0, _timelines(comparison, base, new, data))
    title = f"{summary(comparison)[:120]} · traceview"
    return document(title, (header(page), contents(body), "<main>", *body, "</main>"), data)


def _timelines(comparison: Comparison, base: Timeline, new: Timeline, data: dict[str, Any]) -> str:
    both = under_each_other(base, new)
    drawn = html_charts.timeline(both)
    marks = [(side.forward, word) for side, word in ((base, "base"), (new, "new"))]
    ends = [(one.t1_ns - one.t0_ns, word) for one, word in marks if one is not None]
    drawn["marks"] = [{"at": at, "label": word} for at, word in ((0, "t0"), *ends)]
    if len(ends) == len(marks):
        drawn["between"] = _between(comparison, ends[0][0], ends[1][0])
    drawn["changes"] = _changes(comparison, len(base.rows))
    data[_KEY] = drawn
    inner = [_which(base, "base"), _which(new, "new"), _legend(drawn["changes"]), timeline_chart(both, _KEY)]
    if base.forward is not None and new.forward is not None:
        inner.append(_accounting(base.forward, new.forward))
    kind = "forwards" if len(ends) == len(marks) else "traces"
    return titled(f"Both {kind}", "each from its beginning, on one time axis", "".join(inner))


def _between(comparison: Comparison, base_ns: int, new_ns: int) -> dict[str, Any]:
    """Return the time between both ends, with what the comparison says of the makespan."""
    judged = [row.verdict for row in comparison.rows if row.measure == "makespan_ns"]
    verdict = judged[0] if judged and judged[0] in (IMPROVED, REGRESSED) else ""
    return {"from": min(base_ns, new_ns), "to": max(base_ns, new_ns), "verdict": verdict}


def _changes(comparison: Comparison, first_row: int) -> list[dict[str, Any]]:
    """Return the layers that changed beyond chance, in rows from ``first_row`` on."""
    found = []
    for row in comparison.rows:
        layer = _LAYER.fullmatch(row.subject)
        if row.verdict in (IMPROVED, REGRESSED) and row.measure in _WHATS and layer:
            what = _WHATS[row.measure]
            found.append({"row": first_row, "what": what, "layer": int(layer.group(1)), "verdict": row.verdict})
    return found


def _which(side: Timeline, word: str) -> str:
    forward = side.forward
    if forward is None:
        return f"<p>{word}: the whole trace, which holds no forward</p>"
    named = f'<code class="name"><bdi>{escaped(shown(forward.name, 60))}</bdi></code>'
    makespan = milliseconds(forward.measures.makespan_ns)
    return f"<p>{word}: {named} (index {forward.index}, GPU {forward.device}) · makespan {makespan} ms</p>"


def _legend(changes: list[dict[str, Any]]) -> str:
    if not changes:
        return '<p class="muted">No layer changed beyond chance, so none is framed.</p>'
    entries = "".join(
        f'<li><i class="swatch framed {verdict}"></i>{verdict} beyond chance</li>'
        for verdict in (IMPROVED, REGRESSED)
        if any(one["verdict"] == verdict for one in changes)
    )
    return f'<ul class="legend" aria-label="Frames">{entries}</ul>'


def _accounting(base: Forward, new: Forward) -> str:
    """Return what the two drawn forwards spent their time on, side by side."""
    heads = ['<th scope="col">category</th>']
    heads += [f'<th scope="col" class="right">{word} ms</th>' for word in ("base", "new", "difference")]
    rows = []
    for name in CATEGORIES:
        before, after = base.measures.accounting[name], new.measures.accounting[name]
        if before or after:
            word = f'<span class="category"><i class="swatch c-{name}"></i>{name}</span>'
            rows.append(_row(word, before, after))
    rows.append(_row('<span class="strong">makespan</span>', base.measures.makespan_ns, new.measures.makespan_ns))
    return plain_table(heads, rows, caption="These two forwards; the tables below judge all of them")


def _row(word: str, before: int, after: int) -> str:
    sign = "+" if after > before else ""
    cells = (milliseconds(before), milliseconds(after), f"{sign}{milliseconds(after - before)}")
    return f"<td>{word}</td>" + "".join(f'<td class="right">{cell}</td>' for cell in cells)
