"""When threads were submitting loads: inside a load's range, or between the first and last call for an unnamed load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.naming import Named

if TYPE_CHECKING:
    from traceview.analysis.naming import NamedRanges
    from traceview.analysis.spans import Placement
    from traceview.model import Ints, Trace


@dataclass(frozen=True)
class Submissions:
    """Stretches of time in which a thread submitted the load of a layer: arrays of one length, in ns."""

    thread: Ints
    """index into ``Trace.threads``"""
    start: Ints
    end: Ints


def find_submissions(trace: Trace, named: NamedRanges, by_name: Ints, placed: Placement) -> Submissions:
    """Return the named load ranges, and the runs of calls that submitted loads which only events tell of.

    A run lasts while its thread launches nothing but such loads for one forward. ``by_name`` holds what names alone say
    of each operation, ``placed`` what is known in the end.
    """
    ranges, calls = trace.ranges, trace.calls
    rows = np.flatnonzero(named.meaning == Named.LOAD)
    inside = np.flatnonzero((placed.span >= 0) & (trace.operations.launch >= 0))
    loads = (placed.meaning[inside] == int(Named.LOAD)) & (by_name[inside] != int(Named.LOAD))
    if not loads.any():
        return Submissions(ranges.thread[rows], ranges.start[rows], ranges.end[rows])
    launch = trace.operations.launch[inside]
    runs = (calls.thread[launch].astype(np.int64) << 32) | placed.span[inside]
    # both are nearly in order, which stable sorts are fast on
    order = np.argsort(launch, kind="stable")
    order = order[np.argsort(runs[order], kind="stable")]
    runs, launch, loads = runs[order], launch[order], loads[order]
    changes = (runs[1:] != runs[:-1]) | (loads[1:] != loads[:-1])
    first = launch[np.concatenate(([True], changes))[: len(order)] & loads]
    last = launch[np.concatenate((changes, [True]))[: len(order)] & loads]
    return Submissions(
        thread=np.concatenate((ranges.thread[rows], calls.thread[first])),
        start=np.concatenate((ranges.start[rows], calls.start[first])),
        end=np.concatenate((ranges.end[rows], calls.end[last])),
    )
