"""Lays out what is said of the forward: its accounting as a bar, its measures, and the layers that lose most."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from traceview.render.tables import MUTED, STRONG, Bar, Bars, Block, Column, Line, Part, Section, Table, line, name, row
from traceview.render.verdict import PHRASES, measured_forwards, median_forward
from traceview.report import CATEGORIES
from traceview.units import count, counted, duration, milliseconds, percent, size

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.report import Forward, Layer, Measures, Report

LAYERS_SHOWN = 5
TELLING_SHARE = 0.001
"""of the makespan: a layer that stalls for less gets no row of its own"""


def forward_section(report: Report) -> tuple[Section, ...]:
    """Return the median forward, accounted; nothing where no forward is measured."""
    measured = measured_forwards(report)
    forward = median_forward(measured)
    if forward is None:
        return ()
    medians = report.summary.measures if report.summary and len(measured) > 1 else None
    blocks: tuple[Block, ...] = (
        _bars(forward),
        _accounting(forward, medians),
        *_nothing_on(forward, medians),
        *_measures(forward.measures),
    )
    return (Section("Median forward", "", (_which(forward, measured), *blocks), detail=False),)


def _which(forward: Forward, measured: tuple[Forward, ...]) -> Line:
    """Return which forward is shown, and how far the others are from it."""
    where = f" (index {forward.index}, process {forward.process}, GPU {forward.device})"
    if len(measured) == 1:
        return line(name(forward.name, 40), where, Part(", the only one measured", MUTED))
    makespans = [one.measures.makespan_ns for one in measured]
    spread = f", makespans {milliseconds(min(makespans))} to {milliseconds(max(makespans))} ms"
    # of an even number the lower of the two in the middle is shown, for no forward lies between them
    middle = "median" if len(measured) % 2 else "lower median"
    return line(name(forward.name, 40), where, Part(f", {middle} of {len(measured)}{spread}", MUTED))


def _bars(forward: Forward) -> Bars:
    accounting = forward.measures.accounting
    taken = Bar("taken", tuple((category, accounting[category]) for category in CATEGORIES if accounting[category] > 0))
    ideal_ns = forward.measures.ideal_ns
    if ideal_ns is None or not forward.measures.load_busy_ns:
        return Bars((taken,))
    computing = min(forward.measures.compute_busy_ns, ideal_ns)
    ideal = Bar("ideal", (("compute", computing), ("load_copy", ideal_ns - computing)))
    return Bars((taken, ideal))


def _accounting(forward: Forward, medians: Measures | None) -> Table:
    measures = forward.measures
    columns = [Column("category"), Column("ms", right=True), Column("share", right=True)]
    if medians:
        columns.append(Column("median ms", right=True, minor=True))
    rows = []
    for category in _categories(forward, medians):
        cost = measures.accounting[category]
        share = percent(cost / measures.makespan_ns) if measures.makespan_ns else ""
        cells = [Part(category, category), Part(milliseconds(cost)), Part(share)]
        if medians:
            cells.append(Part(milliseconds(medians.accounting[category]), MUTED))
        rows.append(row(*cells, Part(PHRASES[category], MUTED)))
    total = [Part("makespan", STRONG), Part(milliseconds(measures.makespan_ns), STRONG), Part("")]
    if medians:
        total.append(Part(milliseconds(medians.makespan_ns), MUTED))
    return Table((*columns, Column("the time when", minor=True, wraps=True)), (*rows, row(*total, Part(""))))


def _categories(forward: Forward, medians: Measures | None) -> list[str]:
    """Return the categories that cost anything, in the order of the accounting."""
    accounts = [forward.measures.accounting] + ([medians.accounting] if medians else [])
    return [category for category in CATEGORIES if any(account[category] for account in accounts)]


def _nothing_on(forward: Forward, medians: Measures | None) -> tuple[Line, ...]:
    there = _categories(forward, medians)
    absent = [category for category in CATEGORIES if category not in there]
    return (line(Part(f"nothing on {', '.join(absent)}", MUTED)),) if absent else ()


def _measures(measures: Measures) -> tuple[Line, ...]:
    """Return the forward's other numbers, three or four to a line; without a load there is little to say."""
    if measures.load_busy_ns is None:
        return (_pairs(("loads", "not captured"), ("lead-in", duration(measures.lead_in_ns))),)
    if not measures.load_busy_ns:
        return (_pairs(("loads", "none found"), ("lead-in", duration(measures.lead_in_ns))),)
    first = _pairs(
        ("first layer exposed", _time(measures.first_layer_exposed_ns)),
        ("exposed load", _exposed_load(measures)),
    )
    second = _pairs(
        ("ideal", _time(measures.ideal_ns)),
        ("serial", _time(measures.serial_ns)),
        ("efficiency", _share(measures.pipeline_efficiency)),
        ("load hidden", _share(measures.hidden)),
    )
    third = _pairs(
        ("loads", f"{_moved(measures)}{duration(measures.load_busy_ns)} busy"),
        ("lead-in", duration(measures.lead_in_ns)),
        ("compute inflation under loads", _time(max(measures.compute_inflation_ns or 0, 0) or None)),
    )
    return tuple(pairs for pairs in (first, second, third) if pairs)


def _exposed_load(measures: Measures) -> str:
    if measures.exposed_load_ns is None:
        return ""
    later = measures.exposed_load_later_ns
    of_it = "" if later is None else f", {duration(later)} of it after the first layer"
    return f"{duration(measures.exposed_load_ns)}{of_it}"


def _pairs(*pairs: tuple[str, str]) -> Line:
    """Return ``word value`` pairs in a line; those without value are left out."""
    parts: list[Part] = []
    for word, value in pairs:
        if value:
            parts += [Part(f"{' · ' if parts else ''}{word} ", MUTED), Part(value)]
    return tuple(parts)


def _time(ns: int | None) -> str:
    return "" if ns is None else duration(ns)


def _share(ratio: float | None) -> str:
    return "" if ratio is None else percent(ratio)


def layers_section(report: Report) -> tuple[Section, ...]:
    """Return the layers whose first compute operation waits longest, by their medians over the measured forwards."""
    by_layer: dict[int, list[Layer]] = {}
    forwards = [forward for forward in measured_forwards(report) if forward.layers]
    for forward in forwards:
        for layer in forward.layers:
            by_layer.setdefault(layer.layer, []).append(layer)
    stalls = {number: median(layer.stall_ns for layer in layers) for number, layers in by_layer.items()}
    ordered = sorted(stalls, key=lambda number: (-stalls[number], number))
    if not ordered or not stalls[ordered[0]]:
        return ()
    telling = TELLING_SHARE * median(forward.measures.makespan_ns for forward in forwards)
    worst = ordered[:1] + [number for number in ordered[1:LAYERS_SHOWN] if stalls[number] >= telling]
    columns = ("layer", "stall ms", "load ms", "compute ms", "pieces", "bytes")
    rows = tuple(_layer_row(number, by_layer[number]) for number in worst)
    table = Table(tuple(Column(title, right=True) for title in columns), rows)
    about = f"idle before the first compute operation, medians over {counted(len(forwards), 'forward')}"
    rest = ordered[len(worst) :]
    each = f"at most {duration(stalls[rest[0]])} each" if rest and stalls[rest[0]] else "nothing"
    note = (line(Part(f"the other {len(rest)}: {each}", MUTED)),) if rest else ()
    return (Section("Layers that lose most", about, (table, *note)),)


def _layer_row(number: int, layers: list[Layer]) -> tuple[Line, ...]:
    return row(
        str(number),
        milliseconds(median(layer.stall_ns for layer in layers)),
        _known_median([layer.load_busy_ns for layer in layers], milliseconds),
        milliseconds(median(layer.compute_busy_ns for layer in layers)),
        _known_median([layer.load_pieces for layer in layers], lambda pieces: count(round(pieces))),
        _known_median([layer.load_bytes for layer in layers], size),
    )


def _known_median(values: Sequence[int | None], write: Callable[[float], str]) -> str:
    """Write the median of what is known, nothing where nothing is: a kernel leaves no copies to count."""
    known = [value for value in values if value is not None]
    return write(median(known)) if known else ""


def _moved(measures: Measures) -> str:
    """Write how much was loaded in how many pieces, as far as the trace tells."""
    amount = "" if measures.load_bytes is None else size(measures.load_bytes)
    if measures.load_pieces is None:
        return f"{amount} by kernels, ".lstrip()
    return f"{amount} in {counted(measures.load_pieces, 'piece')}, ".lstrip()
