"""Kernels that move layers to the device themselves: which ones, and how many bytes where the program said so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from instrument.naming import DOMAIN
from traceview.analysis.roles import Role
from traceview.model import Direction, Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.analysis.forwards import Forward
    from traceview.model import Flags, Ints, Trace

UNKNOWN_BYTES = -1


@dataclass(frozen=True)
class SmMoves:
    """Kernels that load, in start order: arrays of one length."""

    rows: Ints
    """rows of ``Trace.operations``"""
    n_bytes: Ints
    """bytes that each moves, ``UNKNOWN_BYTES`` where nothing says so"""

    def take(self, kept: Flags) -> SmMoves:
        """Return the marked ones."""
        return SmMoves(self.rows[kept], self.n_bytes[kept])


def find_sm_moves(trace: Trace, forwards: Sequence[Forward], mover: Flags) -> SmMoves:
    """Return the kernels with which forwards move layers to the device.

    Those are kernels in the range of a layer's load in which nothing is copied from the host, and what some forward
    loads with mover kernels by name, which ``mover`` marks. A range of domain ``traceview`` carries its bytes as
    payload; its kernels share them by how long they run. The payload of another domain may mean anything.
    """
    operations = trace.operations
    parts = [(forward.rows(Role.LOAD), forward.ranges[forward.role == Role.LOAD]) for forward in forwards]
    rows = np.concatenate([part[0] for part in parts] or [np.empty(0, dtype=np.int64)])
    ranges = np.concatenate([part[1] for part in parts] or [np.empty(0, dtype=np.int64)])
    copied = np.zeros(len(trace.ranges) + 1, dtype=bool)
    copied[ranges[operations.direction[rows] == Direction.H2D]] = True
    named = (ranges >= 0) & ~copied[ranges]
    chosen = (operations.kind[rows] == Kind.KERNEL) & (named | mover[rows])
    rows, ranges = rows[chosen], ranges[chosen]
    order = np.argsort(rows, kind="stable")
    return SmMoves(rows[order], _shared_payload(trace, rows[order], ranges[order]))


def _shared_payload(trace: Trace, rows: Ints, in_range: Ints) -> Ints:
    """Return each kernel's part of the bytes that its range says, by duration."""
    ranges = trace.ranges
    ours = np.array([index for index, text in enumerate(trace.names) if text == DOMAIN], dtype=np.int64)
    stated = np.append(np.where(np.isin(ranges.domain, ours) & (ranges.payload > 0), ranges.payload, 0), 0)
    duration = trace.operations.end[rows] - trace.operations.start[rows]
    whole = np.zeros(len(ranges) + 1, dtype=np.int64)
    np.add.at(whole, in_range, duration)
    known = (in_range >= 0) & (stated[in_range] > 0) & (whole[in_range] > 0)
    share = duration / np.maximum(whole[in_range], 1)
    return np.where(known, np.round(stated[in_range] * share).astype(np.int64), UNKNOWN_BYTES)
