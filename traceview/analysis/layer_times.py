"""When the operations of each layer of a forward ran, and what its loads moved.

A forward has dozens of layers and a trace thousands of forwards, so all layers of a forward are looked at together:
each step of numpy costs more than the few operations that it is for.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from traceview import intervals
from traceview.analysis.roles import Role
from traceview.intervals import Intervals
from traceview.model import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.forwards import Forward
    from traceview.model import Ints, Trace

    Part = tuple[int, int]
    """layer and role"""


class LayerTimes:
    """The layers of one forward, by the parts that a layer and a role make."""

    def __init__(self, trace: Trace, forward: Forward) -> None:
        self._trace = trace
        positions, self._parts = forward.by_layer
        self._rows = forward.operations[positions]
        self._begins = np.array([part.start for part in self._parts.values()], dtype=np.int64)

    def set(self, layer: int, role: Role) -> Intervals:
        """Return when a layer's operations of one role ran."""
        return self._sets.get((layer, int(role)), intervals.empty())

    def busy_ns(self, layer: int, role: Role) -> int:
        """Return how long a layer's operations of one role ran."""
        return self._lengths.get((layer, int(role)), 0)

    def moved(self, layer: int) -> tuple[int, int] | None:
        """Return in how many pieces a layer's load was copied, and how many bytes; None where a kernel moved it."""
        return self._moved.get((layer, int(Role.LOAD)), (0, 0))

    def added_ns(self, layers: Sequence[int], role: Role) -> list[int]:
        """Return the ns that each layer's operations of a role add to those of the layers before it.

        That is their busy time, but for layers that run beside each other: a nanosecond counts once.
        """
        sets = [self.set(layer, role) for layer in layers]
        there = [one for one in sets if len(one.start)]
        if all(then.start[0] >= one.end[-1] for one, then in pairwise(there)):
            return [self.busy_ns(layer, role) for layer in layers]
        added, seen = [], intervals.empty()
        for one in sets:
            both = intervals.union(np.append(seen.start, one.start), np.append(seen.end, one.end))
            added.append(both.length - seen.length)
            seen = both
        return added

    @cached_property
    def _times(self) -> tuple[Ints, Ints, bool]:
        """Start and end of each operation, part by part, and whether none runs while another of its part does."""
        operations = self._trace.operations
        start, end = operations.start[self._rows], operations.end[self._rows]
        apart = start[1:] > end[:-1]
        apart[self._begins[1:] - 1] = True
        return start, end, bool(apart.all() and (end > start).all())

    @cached_property
    def _sets(self) -> dict[Part, Intervals]:
        start, end, apart = self._times
        make = Intervals if apart else intervals.union
        return {name: make(start[part], end[part]) for name, part in self._parts.items()}

    @cached_property
    def _lengths(self) -> dict[Part, int]:
        start, end, apart = self._times
        if not apart:
            return {name: one.length for name, one in self._sets.items()}
        return dict(zip(self._parts, self._sums(end - start), strict=True))

    @cached_property
    def _moved(self) -> dict[Part, tuple[int, int] | None]:
        operations = self._trace.operations
        kernels = self._sums(operations.kind[self._rows] == int(Kind.KERNEL))
        moved = zip(self._sums(operations.pieces[self._rows]), self._sums(operations.n_bytes[self._rows]), strict=True)
        return {name: None if kernel else one for name, kernel, one in zip(self._parts, kernels, moved, strict=True)}

    def _sums(self, values: Ints) -> list[int]:
        """Return the sum of each part; no part is empty."""
        if not len(self._begins):
            return []
        sums: list[int] = np.add.reduceat(values, self._begins, dtype=np.int64).tolist()
        return sums
