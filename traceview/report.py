"""The report as frozen plain data: what the analyses fill and every renderer reads.

Field names are the keys of the JSON report (``traceview.report/1``). Times are int ns, sizes int bytes, rates float
GB/s (bytes per ns), ratios float. ``None`` in an optional field means that the trace cannot answer; the JSON leaves
the key out and ``abstained`` says why. Fields whose ``None`` is itself an answer are named in ``NULLABLE`` of their
class.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traceview.report_links import Answer, Inbound, Lane, NicTraffic, Storage

SCHEMA = "traceview.report/1"
_PYTHON_LINE = re.compile(r".+ \(.+:\d+\)")

CATEGORIES = (
    "compute",
    "load_copy",
    "load_gap",
    "stream_queue",
    "engine_queue",
    "sync",
    "implicit_sync",
    "submit",
    "host",
    "sm_busy",
    "launch",
)
"""What a forward's makespan is given away to, in the order of the accounting; ``compute`` is the time well spent."""


@dataclass(frozen=True)
class TraceInfo:
    """What the file says about itself."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"product_version", "schema_version", "facts"})

    path: str
    product_version: str | None
    schema_version: str | None
    start_ns: int
    duration_ns: int
    devices: tuple[Mapping[str, Any], ...]
    processes: tuple[int, ...]
    captured: tuple[str, ...]
    missing: tuple[str, ...]
    facts: Mapping[str, Any] | None
    diagnostics: tuple[str, ...] = ()
    degraded: Mapping[str, str] = field(default_factory=dict)
    """by the number of a GPU, how its PCIe link is below what GPU and slot can do"""


@dataclass(frozen=True)
class Layer:
    """One layer of one forward; ``stall_ns`` is the idle time before its first compute operation.

    ``load_pieces`` and ``load_bytes`` are None where a kernel moved the load and no range says how much; all three of
    the load where the capture does not show the copies of its forward.
    """

    layer: int
    load_busy_ns: int | None
    compute_busy_ns: int
    load_pieces: int | None
    load_bytes: int | None
    stall_ns: int


@dataclass(frozen=True)
class Measures:
    """What is measured of a forward (MEASURES.md, "The accounting"), and as medians over the measured ones."""

    makespan_ns: int
    lead_in_ns: int
    first_layer_exposed_ns: int | None
    exposed_load_ns: int | None
    exposed_load_later_ns: int | None
    ideal_ns: int | None
    serial_ns: int | None
    pipeline_efficiency: float | None
    hidden: float | None
    load_busy_ns: int | None
    """None where no load was found and the capture does not show the copies of the forward; so is ``overlap_ns``"""
    compute_busy_ns: int
    compute_inflation_ns: int | None
    overlap_ns: int | None
    load_pieces: int | None
    load_bytes: int | None
    accounting: Mapping[str, int]
    """ns by category, in the order of ``CATEGORIES``; sums to ``makespan_ns`` exactly (not so for medians)"""


@dataclass(frozen=True)
class Forward:
    """One forward on one device."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"layers_from"})

    name: str
    index: int
    process: int
    device: int
    warmup: bool
    t0_ns: int
    t1_ns: int
    layers_from: str | None
    """``nvtx``, ``events``, ``nvtx+events``, or None for a forward without layers"""
    measures: Measures
    """laid out flat beside the other keys in JSON"""
    layers: tuple[Layer, ...]
    load_memory: Mapping[str, int] = field(default_factory=dict)
    """bytes of the copies that load by the kind of their host memory; empty where kernels load"""


@dataclass(frozen=True)
class Summary:
    """Medians over the forwards that are not warm-up."""

    forwards: int
    measures: Measures


@dataclass(frozen=True)
class Overlap:
    """Two streams or two classes of operations on one device; ``scope`` is ``trace`` or a forward's index."""

    scope: str | int
    process: int
    device: int
    a: str
    b: str
    busy_a_ns: int
    busy_b_ns: int
    overlap_ns: int
    ratio: float


@dataclass(frozen=True)
class ExposedCopy:
    """Copy time of a class that no compute covers; ``copy_class`` is the JSON key ``class``."""

    scope: str | int
    process: int
    device: int
    copy_class: str
    exposed_ns: int


@dataclass(frozen=True)
class CopyFit:
    """The line t = a + bytes / b through the copies of a group; ``reason`` says why where there is none."""

    identifiable: bool
    reason: str | None = None
    piece_cost_ns: float | None = None
    """a: fixed cost of a piece"""
    rate: float | None = None
    """b: asymptotic rate, GB/s"""
    half_bytes: int | None = None
    """a * b: the size of a piece that gets half of that rate"""


@dataclass(frozen=True)
class CopyGroup:
    """All copies of one direction, memory kind and stream; ``n_bytes`` is the JSON key ``bytes``."""

    device: int
    direction: str
    memory: str
    stream: str
    pieces: int
    n_bytes: int
    busy_ns: int
    span_ns: int
    rate_busy: float | None
    rate_span: float | None
    min_bytes: int
    median_bytes: int
    p95_bytes: int
    max_bytes: int
    gap_median_ns: int | None
    """idle time between consecutive pieces on the stream"""
    host_median_ns: int | None
    """time that the submitting call took"""
    histogram: Mapping[str, int]
    """pieces by the power of two at or below their size in bytes"""
    fit: CopyFit


@dataclass(frozen=True)
class Migration:
    """Unified-memory migrations of one device, direction and cause; ``n_bytes`` is the JSON key ``bytes``."""

    device: int
    direction: str
    cause: str
    count: int
    n_bytes: int
    busy_ns: int


@dataclass(frozen=True)
class Sync:
    """Blocking calls that agree in everything but their times; ``range_name`` is the JSON key ``range``."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"forward", "accidental", "range_name", "where"})

    api: str
    kind: str
    """``explicit``, ``implicit`` or ``scalar_readback``"""
    forward: int | None
    count: int
    accidental: bool | None
    """None outside any forward"""
    boundary: bool
    """True for a call after the forward's last compute launch"""
    blocked_ns: int
    cost_ns: int | None
    """None outside any forward"""
    range_name: str | None
    where: tuple[str, ...] | None
    """frames, innermost first"""
    direction: str | None = None
    """which way the call copied; None where it copied nothing"""

    @property
    def calling_line(self) -> str | None:
        """Return the innermost line of Python that is not PyTorch's own, as ``function (file:line)``, or None."""
        frames = (frame for frame in self.where or () if _PYTHON_LINE.fullmatch(frame))
        return next((frame for frame in frames if "(torch/" not in frame), None)


@dataclass(frozen=True)
class Finding:
    """A cause, what it costs and what to do about it."""

    id: str
    severity: str
    """``high``, ``medium`` or ``low``"""
    cost_ns: int
    share: float
    basis: str
    """``accounting``, or ``geometric`` where there is no forward"""
    message: str
    evidence: tuple[str, ...]
    advice: str


@dataclass(frozen=True)
class WhatIf:
    """The makespan that a forward would have with some causes mended, by replaying its dependencies."""

    NULLABLE: ClassVar[frozenset[str]] = frozenset({"predicted_ns", "reason"})

    edits: tuple[str, ...]
    """of ``coalesce``, ``pin``, ``no-sync``, ``own-stream``"""
    makespan_ns: int
    """median of the measured forwards"""
    predicted_ns: int | None
    reason: str | None
    """why there is no prediction"""


@dataclass(frozen=True)
class Abstention:
    """A measure that this trace cannot give, why, and what would add it."""

    measure: str
    reason: str
    fix: str


@dataclass(frozen=True)
class Report:
    """Everything that ``traceview report`` says about one trace."""

    trace: TraceInfo
    forwards: tuple[Forward, ...]
    summary: Summary | None
    overlap: tuple[Overlap, ...]
    exposed_copy: tuple[ExposedCopy, ...]
    copies: tuple[CopyGroup, ...]
    migrations: tuple[Migration, ...]
    syncs: tuple[Sync, ...]
    lanes: tuple[Lane, ...] = ()
    findings: tuple[Finding, ...] = ()
    abstained: tuple[Abstention, ...] = ()
    what_if: tuple[WhatIf, ...] = ()
    checklist: tuple[Answer, ...] = ()
    storage: tuple[Storage, ...] = ()
    inbound: tuple[Inbound, ...] = ()
    """empty unless GPU metrics were asked for"""
    network: tuple[NicTraffic, ...] = ()
