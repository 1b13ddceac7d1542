"""Puts rows in time order, at the price of a look where they are so already, as an export's rows nearly always are.

What a report says must not hang on how a file happens to be laid out, so rows that start together have an order too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traceview.model import Ints


def time_order(start: Ints, then: Callable[[Ints], Sequence[Ints]]) -> Ints | None:
    """Return the rows by start; None where they stand so.

    ``then`` gives, for some rows, the columns that order those of equal start, the one that counts most first.
    """
    order = None
    if np.any(start[1:] < start[:-1]):
        # a stable sort merges runs that are sorted already, and tables joined end to end are such runs
        order = np.argsort(start, kind="stable")
    sorted_start = start if order is None else start[order]
    equal = np.flatnonzero(sorted_start[1:] == sorted_start[:-1])
    if not len(equal):
        return order
    if order is None:
        order = np.arange(len(start))
    tied = np.union1d(equal, equal + 1)
    rows = order[tied]
    order[tied] = rows[np.lexsort((*reversed(then(rows)), start[rows]))]
    return order
