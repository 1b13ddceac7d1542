"""The ranges that one run of the workload opens, or none at all (the fault ``no-names``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from instrument import ranges

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class RangeSet:
    """Functions that return a range: of a forward (number), of a load or compute (layer, bytes), of storage (bytes)."""

    forward: Callable[[int], ranges.Range]
    load: Callable[[int, int], ranges.Range]
    compute: Callable[[int, int], ranges.Range]
    storage_read: Callable[[int], ranges.Range]
    stage: Callable[[int], ranges.Range]


def named_ranges() -> RangeSet:
    """Return the ranges that an analysis finds by name."""
    return RangeSet(ranges.forward, ranges.load, ranges.compute, ranges.storage_read, ranges.stage)


def no_ranges() -> RangeSet:
    """Return ranges that leave nothing in a trace."""
    silent = ranges.SilentRange("", None)
    return RangeSet(
        forward=lambda _number: silent,
        load=lambda _layer, _n_bytes: silent,
        compute=lambda _layer, _n_bytes: silent,
        storage_read=lambda _n_bytes: silent,
        stage=lambda _n_bytes: silent,
    )
