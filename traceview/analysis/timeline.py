"""A forward laid out in time: rows of boxes, the holes between them and what depends on what; ready to be drawn.

::

    host      ▯▯▯▮▮▮▮▯▯▯▯▯      API calls, blocking ones marked
    load      ██████▏█████▏     layer by layer
    compute   ░░░░░░█████░███   ░ a hole, with its category and what it waited for

Nothing here draws. Times are integer ns on the trace's own timeline.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING

from traceview.model import Columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview import report
    from traceview.model import Ints


class RowKind(str, Enum):
    """What a row shows, in the order from top to bottom."""

    RANGES = "ranges"
    HOST = "host"
    LOAD = "load"
    COMPUTE = "compute"
    WRITEBACK = "writeback"
    OTHER = "other"


class What(IntEnum):
    """What a box is: the role of an operation in its forward, or something on the host."""

    LOAD = 0
    COMPUTE = 1
    INPUT = 2
    READBACK = 3
    WRITEBACK = 4
    OTHER = 5
    FOREIGN = 6
    """an operation that runs at the same time and does not belong to the forward"""
    CALL = 7
    BLOCKING = 8
    """an API call that blocks its thread"""
    RANGE = 9


@dataclass(frozen=True)
class Row:
    """One row: a stream, or a host thread."""

    kind: RowKind
    label: str
    of: int
    """index into ``Trace.streams``, or into ``Trace.threads`` for ``RANGES`` and ``HOST``"""


@dataclass(frozen=True)
class Boxes(Columns):
    """What ran, sorted by row, then start; one box may stand for several neighbours that are alike."""

    row: Ints
    """index into ``Timeline.rows``"""
    start: Ints
    end: Ints
    what: Ints
    """:class:`What`"""
    name: Ints
    """index into ``Timeline.names``"""
    layer: Ints
    """layer that it belongs to, or -1"""
    n_bytes: Ints
    queued: Ints
    """ns from the begin of the launch to the start; -1 for what was not launched, or stands for several"""
    count: Ints
    """how many operations or calls it stands for"""
    busy: Ints
    """ns of it in which something really ran: end - start, less where it stands for several"""


@dataclass(frozen=True)
class TimedHoles(Columns):
    """Idle time of compute by cause, in time order; one hole may stand for several neighbours that are alike."""

    row: Ints
    start: Ints
    end: Ints
    category: Ints
    """index into ``CATEGORIES``"""
    layer: Ints
    """layer of the compute operation that ends it, or -1"""
    cause: Ints
    """index into ``Timeline.names`` of the operation, call or range that it waited for, or -1"""
    count: Ints
    spent: Ints
    """ns given to the category; end - start where it stands for one"""


@dataclass(frozen=True)
class Arrows(Columns):
    """Dependencies between streams: a wait for an event, from the work before its record to the work after it."""

    from_row: Ints
    from_time: Ints
    to_row: Ints
    to_time: Ints


@dataclass(frozen=True)
class Timeline:
    """One forward, or a whole trace without forwards, laid out in time."""

    title: str
    forward: report.Forward | None
    """None for a whole trace"""
    zero_ns: int
    """the moment that a picture calls 0: the forward's t0, else the start"""
    start_ns: int
    end_ns: int
    rows: tuple[Row, ...]
    names: tuple[str, ...]
    boxes: Boxes
    holes: TimedHoles
    arrows: Arrows
    things: int
    """operations, calls and ranges that there are; more than boxes where some stand for several"""
    rows_left_out: int
    """streams and threads with less to show, for which there is no row"""


def worst_and_median(forwards: Sequence[report.Forward]) -> tuple[tuple[str, report.Forward], ...]:
    """Return the measured forwards worth a picture with what they are; one where both are the same.

    The median is the lower one, so that it is a forward that happened.
    """
    ordered = sorted(
        (forward for forward in forwards if not forward.warmup), key=lambda forward: forward.measures.makespan_ns
    )
    if not ordered:
        return ()
    median, worst = ordered[(len(ordered) - 1) // 2], ordered[-1]
    if len(ordered) == 1:
        return (("the only forward measured", worst),)
    if worst.measures.makespan_ns == median.measures.makespan_ns:
        return (("worst and median forward", median),)
    return ("worst forward", worst), ("median forward", median)
