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
    """Return the named load ranges, and for each layer's load that only events tell of, first to last call by thread.

    ``by_name`` holds what names alone say of each operation, ``placed`` what is known in the end.
    """
    ranges, calls = trace.ranges, trace.calls
    rows = np.flatnonzero(named.meaning == Named.LOAD)
    loads = np.flatnonzero((placed.meaning == Named.LOAD) & (by_name != Named.LOAD) & (trace.operations.launch >= 0))
    launch = trace.operations.launch[loads]
    keys = np.stack((calls.thread[launch], placed.span[loads], placed.layer[loads]))
    order = np.lexsort((launch, *keys))
    changes = np.any(keys[:, order][:, 1:] != keys[:, order][:, :-1], axis=0)
    first = launch[order][np.concatenate(([True], changes))[: len(order)]]
    last = launch[order][np.concatenate((changes, [True]))[: len(order)]]
    return Submissions(
        thread=np.concatenate((ranges.thread[rows], calls.thread[first])),
        start=np.concatenate((ranges.start[rows], calls.start[first])),
        end=np.concatenate((ranges.end[rows], calls.end[last])),
    )
