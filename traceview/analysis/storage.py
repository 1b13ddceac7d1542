"""The way from storage over host memory to the device: how long each step takes, what it hides behind, which bounds.

::

    storage read   ███ ███ ███             read and staged by one thread, one after the other
    stage             █   █   █
    h2d                ██  ██  ██          behind the reading of the next part
    compute              ████████████
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from instrument.naming import DOMAIN, STAGE, STORAGE_READ
from traceview import intervals
from traceview.analysis.roles import Role
from traceview.analysis.sm_movers import UNKNOWN_BYTES
from traceview.analysis.transfers import HOST, READER, Transfers
from traceview.report_links import Stage, Storage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview.analysis.forwards import Forward
    from traceview.intervals import Intervals
    from traceview.model import Ints, Trace

H2D, COMPUTE = "h2d", "compute"


def measure_storage(trace: Trace, forwards: Sequence[Forward]) -> tuple[Storage, ...]:
    """Return the steps of each forward in which storage was read; none where the trace has no such range.

    A range belongs to the forward of its process during which it starts, whatever its thread: a thread of its own may
    read ahead. Without a ``stage`` range storage wrote straight into the registered pool.
    """
    reads, stages = (_ranges_named(trace, name) for name in (STORAGE_READ, STAGE))
    if not len(reads):
        return ()
    found = []
    for forward in forwards:
        own = {name: _within(trace, rows, forward) for name, rows in ((STORAGE_READ, reads), (STAGE, stages))}
        if len(own[STORAGE_READ]):
            found.append(_storage(trace, forward, own))
    return tuple(found)


def storage_transfers(trace: Trace, process: int) -> tuple[Transfers, ...]:
    """Return a process's reading from storage and its staging as transfers in host memory, each where there is any."""
    processes = np.array([thread.process for thread in trace.threads], dtype=np.int64)
    ranges = trace.ranges
    ours = np.array([index for index, text in enumerate(trace.names) if text == DOMAIN], dtype=np.int64)
    found = []
    for name in (STORAGE_READ, STAGE):
        rows = _ranges_named(trace, name)
        rows = rows[processes[ranges.thread[rows]] == process]
        stated = np.isin(ranges.domain[rows], ours) & (ranges.payload[rows] > 0)
        found.append(
            Transfers(
                name=name,
                direction=HOST,
                mover=READER,
                memory="unknown",
                start=ranges.start[rows],
                end=ranges.end[rows],
                n_bytes=np.where(stated, ranges.payload[rows], UNKNOWN_BYTES),
            )
        )
    return tuple(one for one in found if len(one.start))


def _storage(trace: Trace, forward: Forward, own: Mapping[str, Ints]) -> Storage:
    ranges, operations = trace.ranges, trace.operations
    busy = {name: intervals.union(ranges.start[rows], ranges.end[rows]) for name, rows in own.items() if len(rows)}
    loads, computes = forward.rows(Role.LOAD), forward.rows(Role.COMPUTE)
    for name, rows in ((H2D, loads), (COMPUTE, computes)):
        busy[name] = intervals.union(operations.start[rows], operations.end[rows])
    moved: dict[str, int | None] = {name: _payload(trace, own[name]) for name in busy if name in own}
    moved[H2D] = int(operations.n_bytes[loads].sum()) or None
    return Storage(
        forward=forward.index,
        process=forward.process,
        device=forward.device,
        bounded_by=_bound(trace, own, busy),
        straight=STAGE not in busy,
        stages=tuple(_stage(name, busy, moved.get(name)) for name in busy),
    )


def _stage(name: str, busy: Mapping[str, Intervals], n_bytes: int | None) -> Stage:
    others = [other for word, other in busy.items() if word != name]
    beside = intervals.union(*(np.concatenate(side) for side in zip(*others, strict=True)))
    return Stage(
        stage=name,
        busy_ns=busy[name].length,
        n_bytes=n_bytes,
        hidden_ns=intervals.intersect(busy[name], beside).length,
        under_compute_ns=0 if name == COMPUTE else intervals.intersect(busy[name], busy[COMPUTE]).length,
    )


def _bound(trace: Trace, own: Mapping[str, Ints], busy: Mapping[str, Intervals]) -> str:
    """Return the step that takes longest; reading and staging of one thread take their turns, so they add up."""
    host = 0
    both = np.concatenate(list(own.values()))
    for thread in np.unique(trace.ranges.thread[both]).tolist():
        rows = both[trace.ranges.thread[both] == thread]
        host = max(host, intervals.union(trace.ranges.start[rows], trace.ranges.end[rows]).length)
    longest = max(busy, key=lambda name: busy[name].length)
    if longest in own or host <= busy[longest].length:
        return longest
    return max((name for name in own if name in busy), key=lambda name: busy[name].length)


def _ranges_named(trace: Trace, name: str) -> Ints:
    names = np.array([text == name for text in trace.names] + [False], dtype=bool)
    return np.flatnonzero(names[trace.ranges.name])


def _within(trace: Trace, rows: Ints, forward: Forward) -> Ints:
    """Return which ranges start during a forward in its process."""
    processes = np.array([thread.process for thread in trace.threads], dtype=np.int64)
    start = trace.ranges.start[rows]
    inside = (start >= forward.start) & (start < forward.end)
    kept: Ints = rows[inside & (processes[trace.ranges.thread[rows]] == forward.process)]
    return kept


def _payload(trace: Trace, rows: Ints) -> int | None:
    """Return the bytes that ranges say they move, None where one does not; only in our domain it is bytes."""
    ours = [index for index, text in enumerate(trace.names) if text == DOMAIN]
    stated = trace.ranges.payload[rows]
    return int(stated.sum()) if np.isin(trace.ranges.domain[rows], ours).all() and (stated > 0).all() else None
