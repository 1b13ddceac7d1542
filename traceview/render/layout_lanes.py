"""Lays out who used which link: lanes, the way from storage, what else came into a GPU, RDMA.

Silent on a healthy run: a lane is worth a line when something ran beside it, or when it is slow.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from traceview.render.tables import (
    BAD,
    MUTED,
    STRONG,
    Block,
    Column,
    Line,
    Part,
    Section,
    Table,
    left_out,
    line,
    name,
    row,
    without_empty_columns,
)
from traceview.render.verdict import measured_forwards
from traceview.units import milliseconds, percent, rate, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview.report import Report
    from traceview.report_links import Inbound, Lane, Stage, Storage

LANES_SHOWN = 8
LINKS_SHOWN = 4
TELLING_SHARE = 0.01
"""of the time of a class: what runs beside it for less has its lane in the JSON only"""
NETWORK_SHOWN = 8
UNEXPLAINED_SHARE = 0.01
"""of what a GPU received in a forward, below which nothing is unexplained"""

_HINDERED = frozenset({"inbound_contention", "outbound_contention", "duplex_slowdown", "slowed_elsewhere", "low_rate"})
_CEILINGS = {
    "facts": "by the captured facts",
    "option": "by the option",
    "topology": "by the topology",
}


def lanes_section(report: Report) -> tuple[Section, ...]:
    """Return the transfers that ran beside others, and those that are slow, each with the links that it uses."""
    telling = [lane for lane in report.lanes if _tells(lane)]
    if not telling:
        return ()
    columns = (
        *(Column(title) for title in ("GPU", "transfers", "beside")),
        *(Column(title, right=True) for title in ("both ms", "alone", "together", "slower")),
        Column("same lane"),
        Column("verdict", wraps=True),
        Column("by", minor=True),
    )
    rows = tuple(_lane_row(report, lane) for lane in telling[:LANES_SHOWN])
    blocks: tuple[Block, ...] = (
        without_empty_columns(Table(columns, rows)),
        *left_out(len(telling) - LANES_SHOWN, "lane"),
        *_link_lines(telling[:LANES_SHOWN]),
    )
    return (Section("Lanes", "rates alone and beside other traffic", blocks),)


def _tells(lane: Lane) -> bool:
    if lane.beside is None:
        return lane.verdict == "low_rate"
    both = lane.together_ns or 0
    if both < TELLING_SHARE * lane.busy_ns:
        return False
    return lane.slowdown is not None or lane.shared_lane


def _lane_row(report: Report, lane: Lane) -> tuple[Line, ...]:
    words = lane.verdict.replace("_", " ")
    several = len({one.process for one in report.lanes}) > 1
    place = f"{lane.process}/{lane.device}" if several else str(lane.device)
    alone = lane.rate_alone if lane.beside or lane.rate_alone is not None else lane.rate
    return row(
        place if several or len(report.trace.devices) > 1 else "",
        lane.transfer_class,
        lane.beside or "",
        "" if lane.together_ns is None else milliseconds(lane.together_ns),
        "" if alone is None else rate(alone),
        "" if lane.rate_together is None else rate(lane.rate_together),
        "" if lane.slowdown is None else percent(max(lane.slowdown, 0.0)),
        "" if lane.beside is None else "yes" if lane.shared_lane else "no",
        Part(words, BAD) if lane.verdict in _HINDERED else Part(words),
        lane.mover,
    )


def _link_lines(lanes: Sequence[Lane]) -> tuple[Line, ...]:
    """Return the links of each class that the table shows, and what they can carry."""
    seen: dict[tuple[int, str], Lane] = {}
    for lane in lanes:
        seen.setdefault((lane.device, lane.transfer_class), lane)
    found = []
    for (_, transfers), lane in list(seen.items())[:LINKS_SHOWN]:
        told = "" if lane.path_from in ("presumed", "facts") else f" (told by the {lane.path_from})"
        at_most = ""
        if lane.ceiling is not None and lane.ceiling_from == "observed":
            at_most = f"; best copy {rate(lane.ceiling)}, link unknown"
        elif lane.ceiling is not None and lane.ceiling_from is not None:
            at_most = f"; at most {rate(lane.ceiling)}, {_CEILINGS[lane.ceiling_from]}"
        found.append(line(Part(f"{transfers}: {' · '.join(lane.links)}{told}{at_most}", MUTED)))
    return tuple(found)


def storage_section(report: Report) -> tuple[Section, ...]:
    """Return the steps from storage to the device of the measured forwards, and the one that bounds them."""
    measured = {(forward.index, forward.device) for forward in measured_forwards(report)}
    own = [entry for entry in report.storage if (entry.forward, entry.device) in measured]
    if not own:
        return ()
    columns = (
        Column("step"),
        *(Column(title, right=True) for title in ("ms", "bytes", "rate", "hidden", "under compute")),
        Column(""),
    )
    bound = _most_frequent(entry.bounded_by for entry in own)
    names = dict.fromkeys(stage.stage for entry in own for stage in entry.stages)
    rows = tuple(_stage_row(step, [_stage_of(entry, step) for entry in own], step == bound) for step in names)
    note = "Nothing is staged: storage writes straight into the host pool that the loads read."
    straight = (line(Part(note, MUTED)),) if all(entry.straight for entry in own) else ()
    about = "medians of the measured forwards; hidden: beside another step"
    return (Section("From storage", about, (without_empty_columns(Table(columns, rows)), *straight)),)


def _stage_row(step: str, found: Sequence[Stage | None], bounds: bool) -> tuple[Line, ...]:
    stages = [stage for stage in found if stage is not None]
    busy = median(stage.busy_ns for stage in stages)
    moved = [stage.n_bytes for stage in stages if stage.n_bytes is not None]
    n_bytes = median(moved) if len(moved) == len(stages) else None
    hidden, under = (median(part) for part in ([s.hidden_ns for s in stages], [s.under_compute_ns for s in stages]))
    return row(
        step,
        milliseconds(busy),
        "" if n_bytes is None else size(n_bytes),
        "" if n_bytes is None or not busy else rate(n_bytes / busy),
        percent(hidden / busy) if busy else "",
        percent(under / busy) if busy and step != "compute" else "",
        Part("takes longest", STRONG) if bounds else "",
    )


def _stage_of(entry: Storage, step: str) -> Stage | None:
    return next((stage for stage in entry.stages if stage.stage == step), None)


def inbound_section(report: Report) -> tuple[Section, ...]:
    """Return what each GPU received over PCIe in a measured forward, and how much of it the trace explains."""
    measured = {(forward.index, forward.device) for forward in measured_forwards(report)}
    own = [entry for entry in report.inbound if (entry.forward, entry.device) in measured]
    lines = tuple(
        _inbound_line([entry for entry in own if entry.device == device])
        for device in dict.fromkeys(entry.device for entry in own)
    )
    return (
        Section("Inbound PCIe traffic", "median of the measured forwards, by the GPU's own counter", lines),
    ) * bool(own)


def _inbound_line(entries: Sequence[Inbound]) -> Line:
    received = median(entry.received_bytes for entry in entries)
    unexplained = median(entry.unexplained_bytes for entry in entries)
    start = f"GPU {entries[0].device} received {size(received)} a forward; "
    if unexplained < UNEXPLAINED_SHARE * received:
        return line(start, "the transfers of this trace explain all of it.")
    share = f"{size(unexplained)} of it ({percent(unexplained / received)})"
    return line(start, Part(share, BAD), " are no transfer of this trace: RDMA receive, or copies that nobody traced.")


def network_section(report: Report) -> tuple[Section, ...]:
    """Return what the NICs moved by RDMA."""
    busy = [entry for entry in report.network if entry.rate is not None]
    if not busy:
        return ()
    numbers = (Column(title, right=True) for title in ("port", "bytes", "busy ms", "rate busy", "peak"))
    columns = (Column("NIC"), Column("RDMA"), *numbers)
    rows = tuple(
        row(
            name(entry.nic, 24),
            entry.direction,
            str(entry.port),
            size(entry.n_bytes),
            milliseconds(entry.busy_ns),
            "" if entry.rate is None else rate(entry.rate),
            rate(entry.peak_rate),
        )
        for entry in busy[:NETWORK_SHOWN]
    )
    notes = left_out(len(busy) - NETWORK_SHOWN, "port")
    return (Section("RDMA", "whole trace, by the NICs' own counters", (Table(columns, rows), *notes)),)


def _most_frequent(words: Iterable[str]) -> str:
    listed = list(words)
    return max(dict.fromkeys(listed), key=listed.count)
