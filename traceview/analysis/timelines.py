"""Makes the timelines of a trace: of chosen forwards, or of the whole trace where it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.accounting import account
from traceview.analysis.busy import Busy
from traceview.analysis.events import pair_waits
from traceview.analysis.forwards import find_forwards
from traceview.analysis.naming import Named, read_names
from traceview.analysis.overlap import touches
from traceview.analysis.timeline import Arrows, RowKind, TimedHoles, Timeline, What
from traceview.analysis.timeline_causes import name_causes
from traceview.analysis.timeline_merge import merge_boxes, merge_holes
from traceview.analysis.timeline_rows import Names, Scene, lay_out
from traceview.model import Direction, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from traceview import report
    from traceview.analysis.accounting import Accounting
    from traceview.analysis.forwards import Forward, ForwardOptions
    from traceview.model import Ints, Trace

_KIND_ROLES = {Direction.H2D: What.LOAD, Direction.D2H: What.WRITEBACK}


@dataclass(frozen=True)
class _Found:
    """What is known of a forward: how it was found, accounted for and measured."""

    forward: Forward
    accounting: Accounting
    measured: report.Forward
    layered: Ints
    """rows of ``Trace.ranges`` that name a load or a compute"""


def forward_timelines(
    trace: Trace, options: ForwardOptions, wanted: Sequence[tuple[str, report.Forward]]
) -> tuple[Timeline, ...]:
    """Return the timeline of each wanted forward, in their order; ``wanted`` are (title, forward of the report)."""
    busy = Busy(trace)
    found = {(forward.index, forward.device): forward for forward in find_forwards(trace, options)}
    layered = np.flatnonzero(read_names(trace, options.names).meaning > Named.FORWARD)
    timelines = []
    for title, measured in wanted:
        forward = found[measured.index, measured.device]
        timelines.append(_timeline(busy, title, _Found(forward, account(trace, forward, busy), measured, layered)))
    return tuple(timelines)


def trace_timeline(trace: Trace) -> Timeline | None:
    """Return the whole trace from its first operation to its last, judged by kinds alone; None without operations."""
    operations = trace.operations
    if not len(operations):
        return None
    what = np.full(len(operations), int(What.COMPUTE), dtype=np.int64)
    what[operations.kind == Kind.COPY] = What.OTHER
    for direction, role in _KIND_ROLES.items():
        what[operations.direction == direction] = role
    launches = operations.launch[operations.launch >= 0]
    scene = Scene(
        trace=trace,
        busy=Busy(trace),
        start_ns=int(operations.start[0]),
        end_ns=int(operations.end.max()),
        operations=np.arange(len(operations)),
        what=what,
        layer=np.full(len(operations), -1, dtype=np.int64),
        threads=_by_launches(trace, launches),
        ranges=_outer_ranges(trace, np.arange(len(trace.ranges)), _by_launches(trace, launches)),
    )
    names = Names(trace)
    rows, boxes, left_out = lay_out(scene, names)
    nothing = np.empty(0, dtype=np.int64)
    return Timeline(
        title="the whole trace",
        forward=None,
        zero_ns=scene.start_ns,
        start_ns=scene.start_ns,
        end_ns=scene.end_ns,
        rows=rows,
        names=names.texts(),
        boxes=merge_boxes(boxes),
        holes=TimedHoles(*(nothing,) * 8),
        arrows=Arrows(*(nothing,) * 4),
        things=len(boxes),
        rows_left_out=left_out,
    )


def _timeline(busy: Busy, title: str, found: _Found) -> Timeline:
    trace, forward, accounting = busy.trace, found.forward, found.accounting
    scene = _scene(busy, found)
    names = Names(trace)
    rows, boxes, left_out = lay_out(scene, names)
    of_stream = {row.of: index for index, row in enumerate(rows) if row.kind not in (RowKind.RANGES, RowKind.HOST)}
    holes = accounting.holes
    layer = np.full(len(trace.operations), -1, dtype=np.int64)
    layer[forward.operations] = forward.layer
    timed = TimedHoles(
        row=_rows_of(of_stream, trace.operations.stream[holes.before]),
        start=holes.start,
        end=holes.end,
        category=holes.category.astype(np.int64),
        layer=layer[holes.before],
        cause=name_causes(busy, forward, holes, names),
        count=np.ones(len(holes.start), dtype=np.int64),
        spent=holes.lengths,
    )
    return Timeline(
        title=title,
        forward=found.measured,
        zero_ns=accounting.t0_ns,
        start_ns=scene.start_ns,
        end_ns=scene.end_ns,
        rows=rows,
        names=names.texts(),
        boxes=merge_boxes(boxes),
        holes=merge_holes(timed),
        arrows=_arrows(scene, of_stream),
        things=len(boxes),
        rows_left_out=left_out,
    )


def _scene(busy: Busy, found: _Found) -> Scene:
    """Return what lies in the time of a forward on its device, whether it belongs to the forward or not."""
    trace, forward = busy.trace, found.forward
    operations = trace.operations
    start = min(forward.start, found.accounting.t0_ns)
    end = max(found.accounting.t1_ns, int(operations.end[forward.operations].max()))
    here = touches(trace, forward.process, forward.device)
    rows = np.flatnonzero(here & (operations.start < end) & (operations.end > start))
    what = np.full(len(operations), int(What.FOREIGN), dtype=np.int64)
    what[forward.operations] = forward.role
    layer = np.full(len(operations), -1, dtype=np.int64)
    layer[forward.operations] = forward.layer
    launches = operations.launch[forward.operations]
    threads = _by_launches(trace, launches[launches >= 0])
    return Scene(
        trace=trace,
        busy=busy,
        start_ns=start,
        end_ns=end,
        operations=rows,
        what=what[rows],
        layer=layer[rows],
        threads=threads or (forward.thread,),
        ranges=_ranges_in(trace, found, (start, end), threads),
    )


def _ranges_in(trace: Trace, found: _Found, window: tuple[int, int], threads: Iterable[int]) -> Ints:
    """Return the ranges that name loads and computes, or without any the outermost ones inside the forward's range."""
    ranges, forward = trace.ranges, found.forward
    in_window = (ranges.start < window[1]) & (ranges.end > window[0])
    layered = found.layered[in_window[found.layered]]
    if len(layered):
        return _outer_ranges(trace, layered, threads)
    encloses = (ranges.start <= forward.start) & (ranges.end >= forward.end)
    return _outer_ranges(trace, np.flatnonzero(in_window & ~encloses & (ranges.start >= forward.start)), threads)


def _by_launches(trace: Trace, launches: Ints) -> tuple[int, ...]:
    """Return the threads that made the calls, the busiest first."""
    count = np.bincount(trace.calls.thread[launches], minlength=len(trace.threads))
    present = np.flatnonzero(count)
    return tuple(present[np.argsort(-count[present], kind="stable")].tolist())


def _outer_ranges(trace: Trace, rows: Ints, threads: Iterable[int]) -> Ints:
    """Return those of ``rows`` on the threads that lie in no other of them."""
    ranges = trace.ranges
    kept = [np.empty(0, dtype=np.int64)]
    for thread in threads:
        own = rows[ranges.thread[rows] == thread]
        if len(own):
            reach = np.maximum.accumulate(ranges.end[own])
            kept.append(own[np.concatenate(([True], ranges.start[own][1:] >= reach[:-1]))])
    return np.concatenate(kept)


def _arrows(scene: Scene, of_stream: dict[int, int]) -> Arrows:
    """Return one arrow per wait of a stream for work of another one: from the last work before to the first after."""
    trace = scene.trace
    pairs = pair_waits(trace)
    waits = np.flatnonzero(pairs >= 0)
    records = pairs[waits]
    by_launch = {stream: _launched_on(scene, stream) for stream in of_stream}
    found: dict[tuple[int, int], tuple[int, int, int, int]] = {}
    columns = (
        trace.event_records.stream[records].tolist(),
        trace.event_records.call[records].tolist(),
        trace.event_waits.stream[waits].tolist(),
        trace.event_waits.call[waits].tolist(),
    )
    for from_stream, recorded, to_stream, waited in zip(*columns, strict=True):
        if from_stream == to_stream or from_stream not in of_stream or to_stream not in of_stream:
            continue
        before, last_end = by_launch[from_stream][0], by_launch[from_stream][2]
        after, first_start = by_launch[to_stream][:2]
        last = int(np.searchsorted(before, recorded)) - 1
        first = int(np.searchsorted(after, waited))
        if last < 0 or first >= len(after) or recorded < 0:
            continue
        ends, starts = int(last_end[last]), int(first_start[first])
        found[of_stream[to_stream], starts] = (of_stream[from_stream], ends, of_stream[to_stream], starts)
    table = np.array(sorted(found.values()), dtype=np.int64).reshape(-1, 4)
    return Arrows(*(table[:, column].copy() for column in range(4)))


def _launched_on(scene: Scene, stream: int) -> tuple[Ints, Ints, Ints]:
    """Return call row, start and end of the shown operations that were launched on a stream, in launch order."""
    operations = scene.trace.operations
    rows = scene.operations[operations.stream[scene.operations] == stream]
    rows = rows[operations.launch[rows] >= 0]
    rows = rows[np.argsort(operations.launch[rows], kind="stable")]
    return operations.launch[rows], operations.start[rows], operations.end[rows]


def _rows_of(of_stream: dict[int, int], streams: Ints) -> Ints:
    known, inverse = np.unique(streams, return_inverse=True)
    return np.array([of_stream.get(stream, -1) for stream in known.tolist()], dtype=np.int64)[inverse.reshape(-1)]
