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
    if not len(waits) or not len(records):
        return np.full(len(waits), -1, dtype=np.int64)
    if (records.sync >= 0).any() and (waits.sync >= 0).any():
        return _latest_before(trace, waits.sync, records.sync)
    return _latest_before(trace, waits.event, records.event)


def _latest_before(trace: Trace, wait_ids: Ints, record_ids: Ints) -> Ints:
    """Return the latest record of the same context and id whose call started before that of the wait."""
    waits, records = trace.event_waits, trace.event_records
    contexts: dict[tuple[int, int], int] = {}
    context = np.array(
        [contexts.setdefault((stream.process, stream.context), len(contexts)) for stream in trace.streams],
        dtype=np.int64,
    )
    known = np.unique(np.concatenate((record_ids, wait_ids)))
    keys = [
        context[table.stream] * len(known) + np.searchsorted(known, ids)
        for table, ids in ((records, record_ids), (waits, wait_ids))
    ]
    order = np.lexsort((records.call, keys[0]))
    # calls are sorted by start, so the row of a call stands for its time
    span = len(trace.calls) + 1
    sorted_keys = keys[0][order] * span + records.call[order]
    at = np.searchsorted(sorted_keys, keys[1] * span + waits.call, side="left") - 1
    found = order[np.maximum(at, 0)]
    return np.where((at >= 0) & (keys[0][found] == keys[1]) & (waits.call >= 0), found, -1)


def rows_by_stream(table: Records, streams: int) -> list[Ints]:
    """Return the rows of each stream's records or waits, in the order of their calls."""
    order = np.argsort(table.stream, kind="stable")
    bounds = np.searchsorted(table.stream[order], np.arange(streams + 1))
    return [order[low:high] for low, high in pairwise(bounds)]
