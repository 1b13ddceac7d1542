"""Which record a stream's wait is for: the dependencies between streams."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from traceview.model import Ints, Records, Trace


def pair_waits(trace: Trace) -> Ints:
    """Return, for each row of ``trace.event_waits``, the row of ``trace.event_records`` that it waits for, or -1.

    Paired by the id that the export gives to both, else by context and event id with the latest record that was
    called before the wait; PyTorch uses event ids again and again, so that they alone pair wrongly.
    """
    waits, records = trace.event_waits, trace.event_records
    paired = np.full(len(waits), -1, dtype=np.int64)
    if not len(waits) or not len(records):
        return paired
    process, context = _places(trace)
    told = records.sync >= 0
    exact = (waits.sync >= 0) & told.any()
    # an id that the export gives to both is the process's; an event's own id lives in its context
    ways = (
        (np.flatnonzero(exact), np.flatnonzero(told), process, waits.sync, records.sync),
        (np.flatnonzero(~exact), np.arange(len(records)), context, waits.event, records.event),
    )
    for of_wait, of_record, owner, wait_ids, record_ids in ways:
        found = _latest_before(
            (owner[waits.stream[of_wait]], wait_ids[of_wait], waits.call[of_wait]),
            (owner[records.stream[of_record]], record_ids[of_record], records.call[of_record]),
        )
        paired[of_wait] = np.where(found >= 0, np.append(of_record, -1)[found], -1)
    return paired


def _places(trace: Trace) -> tuple[Ints, Ints]:
    """Return a number for the process and one for the context of each stream."""
    numbers: dict[tuple[int, ...], int] = {}
    process = [numbers.setdefault((stream.process,), len(numbers)) for stream in trace.streams]
    context = [numbers.setdefault((stream.process, stream.context), len(numbers)) for stream in trace.streams]
    return np.array(process, dtype=np.int64), np.array(context, dtype=np.int64)


def _latest_before(waits: tuple[Ints, Ints, Ints], records: tuple[Ints, Ints, Ints]) -> Ints:
    """Return, for each wait, the position of the latest record of the same owner and id that was called before it.

    Both are (owner, id, call); calls are sorted by start, so that the row of a call stands for its time.
    """
    if not len(waits[0]) or not len(records[0]):
        return np.full(len(waits[0]), -1, dtype=np.int64)
    known = np.unique(np.concatenate((records[1], waits[1])))
    keys = [owner * len(known) + np.searchsorted(known, ids) for owner, ids, _ in (records, waits)]
    order = np.lexsort((records[2], keys[0]))
    span = int(max(waits[2].max(), records[2].max())) + 2
    sorted_keys = keys[0][order] * span + records[2][order]
    at = np.searchsorted(sorted_keys, keys[1] * span + waits[2], side="left") - 1
    found = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (keys[0][found] == keys[1]) & (waits[2] >= 0), found, -1)


def rows_by_stream(table: Records, streams: int) -> list[Ints]:
    """Return the rows of each stream's records or waits, in the order of their calls."""
    order = np.argsort(table.stream, kind="stable")
    bounds = np.searchsorted(table.stream[order], np.arange(streams + 1))
    return [order[low:high] for low, high in pairwise(bounds)]
