"""Puts rows in time order, at the price of a look where they are so already, as an export's rows nearly always are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from traceview.model import Ints


def time_order(start: Ints, then: Ints | None = None) -> Ints | None:
    """Return the rows by start, of equal starts by ``then``, of equal both as they stand; None where they stand so."""
    order = None
    if np.any(start[1:] < start[:-1]):
        # a stable sort merges runs that are sorted already, and tables joined end to end are such runs
        order = np.argsort(start, kind="stable")
    if then is None:
        return order
    sorted_start = start if order is None else start[order]
    equal = np.flatnonzero(sorted_start[1:] == sorted_start[:-1])
    if not len(equal):
        return order
    if order is None:
        order = np.arange(len(start))
    tied = np.union1d(equal, equal + 1)
    rows = order[tied]
    order[tied] = rows[np.lexsort((then[rows], start[rows]))]
    return order
