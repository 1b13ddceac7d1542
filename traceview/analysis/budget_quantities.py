"""What a budget can limit: each quantity with its keys, its unit, and how it is read from a report."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traceview.report import Forward, Report, Sync

_SCALES = {
    "time": {"_ms": 1e6, "_us": 1e3, "_ns": 1.0, "_s": 1e9},
    "size": {"_bytes": 1.0, "_kib": 1024.0, "_mib": 1024.0**2, "_gib": 1024.0**3},
    "rate": {"_gb_s": 1.0},
    "ratio": {"": 1.0},
    "count": {"": 1.0},
}
"""By kind, the endings of a key and how many base units (ns, bytes, bytes per ns) they stand for."""


@dataclass(frozen=True)
class Quantity:
    """Something that a budget can limit."""

    name: str
    kind: str
    """``time``, ``size``, ``rate``, ``ratio`` or ``count``"""
    about: str
    read: Callable[[Report], float | None]
    """in ns, bytes, bytes per ns; None where the trace cannot answer"""
    syncs: str | None = None
    """``accidental``, or a kind of blocking call, where the quantity counts such calls"""


@dataclass(frozen=True)
class LimitKey:
    """A quantity in a unit: what stands to the left in a budget file."""

    quantity: Quantity
    ending: str
    scale: float

    @property
    def key(self) -> str:
        """Return the key as it is written."""
        return f"{self.quantity.name}{self.ending}"

    def read(self, report: Report) -> float | None:
        """Return the quantity in the key's unit, or None where the trace cannot answer."""
        value = self.quantity.read(report)
        return None if value is None else value / self.scale


def _measured(report: Report) -> list[Forward]:
    return [forward for forward in report.forwards if not forward.warmup]


def _middle(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if known else None


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _of_summary(field: str) -> Callable[[Report], float | None]:
    def read(report: Report) -> float | None:
        return None if report.summary is None else getattr(report.summary.measures, field)

    return read


def _of_category(name: str) -> Callable[[Report], float | None]:
    def read(report: Report) -> float | None:
        return None if report.summary is None else report.summary.measures.accounting[name]

    return read


def _overlap_ratio(report: Report) -> float | None:
    pairs = [
        (one.measures.overlap_ns, one.measures.load_busy_ns, one.measures.compute_busy_ns) for one in _measured(report)
    ]
    return _middle(both / min(load, compute) for both, load, compute in pairs if both is not None and load and compute)


def _load_rate(report: Report) -> float | None:
    found = [(one.measures.load_bytes, one.measures.load_busy_ns) for one in _measured(report)]
    return _middle(n_bytes / busy for n_bytes, busy in found if n_bytes and busy)


def _pieces(report: Report) -> float | None:
    return _most(forward.measures.load_pieces for forward in _measured(report))


def _pieces_per_layer(report: Report) -> float | None:
    return _most(layer.load_pieces for forward in _measured(report) for layer in forward.layers)


def blocking_in(report: Report, chosen: Callable[[Sync], bool]) -> list[Sync]:
    """Return the chosen blocking calls of the measured forwards, the costliest first."""
    measured = {forward.index for forward in _measured(report)}
    found = [sync for sync in report.syncs if sync.forward in measured and chosen(sync)]
    return sorted(found, key=lambda sync: -(sync.cost_ns or 0))


def is_accidental(kind: str) -> Callable[[Sync], bool]:
    """Return whether a call is accidental and, unless ``kind`` is ``accidental``, of that kind."""
    return lambda sync: bool(sync.accidental) and kind in ("accidental", sync.kind)


def _calls(kind: str) -> Callable[[Report], float | None]:
    def read(report: Report) -> float | None:
        measured = _measured(report)
        if not measured or "api_calls" in report.trace.missing:
            return None
        counts: dict[int | None, int] = defaultdict(int)
        for sync in blocking_in(report, is_accidental(kind)):
            counts[sync.forward] += sync.count
        return max(counts.values(), default=0)

    return read


def _sync_cost(report: Report) -> float | None:
    measured = _measured(report)
    if not measured or "api_calls" in report.trace.missing:
        return None
    costs: dict[int | None, int] = defaultdict(int)
    for sync in report.syncs:
        costs[sync.forward] += sync.cost_ns or 0
    return _middle(costs[forward.index] for forward in measured)


def _pageable(report: Report) -> float | None:
    if "copies" in report.trace.missing:
        return None
    return sum(group.n_bytes for group in report.copies if group.memory == "pageable")


_TIMES = {
    "makespan": "from the first load to the last compute, median forward",
    "first_layer_exposed": "what the user waits before anything overlaps, median forward",
    "exposed_load": "waiting for loads, median forward",
    "exposed_load_later": "its part after the first layer",
    "lead_in": "from the opening of the range to the first operation",
    "load_busy": "time under loads, median forward",
    "compute_busy": "time under compute, median forward",
    "compute_inflation": "what loads add to compute, median forward",
}
_QUANTITIES: Sequence[Quantity] = (
    *(Quantity(name, "time", about, _of_summary(f"{name}_ns")) for name, about in _TIMES.items()),
    *(Quantity(name, "time", "category of the accounting, median", _of_category(name)) for name in CATEGORIES),
    Quantity("sync_cost", "time", "idle GPU caused by blocking calls, median forward", _sync_cost, "accidental"),
    Quantity("pipeline_efficiency", "ratio", "ideal over makespan, median", _of_summary("pipeline_efficiency")),
    Quantity("hidden", "ratio", "share of the loads under compute, median", _of_summary("hidden")),
    Quantity("overlap_ratio", "ratio", "overlap over the shorter of load and compute, median", _overlap_ratio),
    Quantity("load_rate", "rate", "bytes loaded over load busy time, median", _load_rate),
    Quantity("load", "size", "bytes loaded, median forward", _of_summary("load_bytes")),
    Quantity("pageable", "size", "copied from or to pageable memory in the whole trace", _pageable),
    Quantity("h2d_pieces", "count", "copies that load a forward, most of any", _pieces),
    Quantity("h2d_pieces_per_layer", "count", "copies that load a layer, most of any", _pieces_per_layer),
    Quantity(
        "accidental_syncs",
        "count",
        "accidental blocking calls, most of any forward",
        _calls("accidental"),
        "accidental",
    ),
    Quantity(
        "scalar_readbacks",
        "count",
        "accidental scalar read-backs, most of any forward",
        _calls("scalar_readback"),
        "scalar_readback",
    ),
    Quantity(
        "implicit_syncs",
        "count",
        "accidental calls that block without saying so, most of any forward",
        _calls("implicit"),
        "implicit",
    ),
)

LIMIT_KEYS = {
    found.key: found
    for quantity in _QUANTITIES
    for found in (LimitKey(quantity, ending, scale) for ending, scale in _SCALES[quantity.kind].items())
}
"""Everything that may stand to the left in a budget file's ``[limits]``."""

KNOWN_KEYS = tuple(LimitKey(quantity, *next(iter(_SCALES[quantity.kind].items()))).key for quantity in _QUANTITIES)
"""One key for each quantity, in the unit that suits it: what is listed where a key is not known."""
