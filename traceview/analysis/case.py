"""One forward with everything that is known about it, and the thresholds by which it is judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from traceview.analysis.copies import median_piece
from traceview.analysis.link_causes import MOSTLY
from traceview.analysis.roles import Role
from traceview.model import Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from traceview import report
    from traceview.analysis.accounting import Accounting
    from traceview.analysis.forwards import Forward
    from traceview.analysis.link_causes import Pages
    from traceview.analysis.syncs import BlockingCalls
    from traceview.model import Ints, Trace
    from traceview.report import Measures
    from traceview.report_links import Lane


@dataclass(frozen=True)
class Thresholds:
    """When a cause is worth telling; each can be overridden."""

    min_share: float = 0.01
    """share of the makespan below which a cause is no finding"""
    medium_share: float = 0.02
    """share from which it is of medium severity"""
    high_share: float = 0.05
    """share from which it is of high severity"""
    min_cost_us: float = 50.0
    """cost in µs below which a cause is no finding, whatever its share"""
    fragment_pieces: float = 16.0
    """pieces of one layer's load from which it counts as cut up"""
    fragment_bytes: float = 1 << 20
    """median size of a piece, in bytes, above which a load does not count as cut up"""
    low_rate: float = 0.7
    """share of the attainable link rate below which a load of large pinned copies is slow"""


@dataclass(frozen=True)
class Case:
    """One forward on one device with everything that is known about it."""

    trace: Trace
    forward: Forward
    accounting: Accounting
    measured: report.Forward
    blocking: BlockingCalls
    attainable: float | None
    """GB/s that large pinned copies get from the link, or None where nothing tells"""
    slowdowns: Mapping[str, int]
    """copy time in ns that loads lost to other traffic, by finding"""
    pages: Pages | None
    """where the pinned host buffers lie, None where nothing tells"""
    lanes: Sequence[Lane]
    """the lanes of the whole trace"""
    thresholds: Thresholds

    def rows(self, role: Role) -> Ints:
        """Return the rows of the forward's operations with a role."""
        return self.forward.rows(role)

    @property
    def measures(self) -> Measures:
        """Return the forward's measures."""
        return self.measured.measures

    @cached_property
    def load_copies(self) -> Ints:
        """Return the rows of the copies that load."""
        rows = self.rows(Role.LOAD)
        copies: Ints = rows[self.trace.operations.kind[rows] == Kind.COPY]
        return copies

    @cached_property
    def pageable(self) -> bool:
        """Whether most bytes that the forward loads come from pageable memory."""
        rows, operations = self.load_copies, self.trace.operations
        pageable = operations.n_bytes[rows[operations.memory[rows] == Memory.PAGEABLE]].sum()
        return bool(2 * pageable > operations.n_bytes[rows].sum())

    @cached_property
    def pageable_launches(self) -> frozenset[int]:
        """The calls that submitted loads from pageable memory."""
        rows, operations = self.load_copies, self.trace.operations
        return frozenset(operations.launch[rows[operations.memory[rows] == Memory.PAGEABLE]].tolist())

    @cached_property
    def moved_by_kernels(self) -> bool:
        """Whether kernels load, so that nothing is known about pieces and rates."""
        rows = self.rows(Role.LOAD)
        return bool((self.trace.operations.kind[rows] == Kind.KERNEL).any())

    @cached_property
    def fragmented(self) -> bool:
        """Whether the forward's loads are cut into many small pieces."""
        rows, operations = self.load_copies, self.trace.operations
        if not len(rows):
            return False
        loads = sum(1 for layer in self.measured.layers if layer.load_pieces) or 1
        many = int(operations.pieces[rows].sum()) / loads >= self.thresholds.fragment_pieces
        return many and median_piece(operations, rows) <= self.thresholds.fragment_bytes

    @cached_property
    def memory_known(self) -> bool:
        """Whether the export tells of most bytes that the forward loads whether their source was pinned."""
        rows, operations = self.load_copies, self.trace.operations
        untold = operations.n_bytes[rows[operations.memory[rows] == Memory.UNKNOWN]].sum()
        return bool(2 * untold <= operations.n_bytes[rows].sum())

    @property
    def remote(self) -> bool:
        """Whether most pages of the host buffers lie on another NUMA node than the GPU's."""
        return self.pages is not None and self.pages.remote > MOSTLY

    @property
    def load_rate(self) -> float | None:
        """GB/s while the forward's loads ran, None where kernels moved them or nothing did."""
        busy, moved = self.measures.load_busy_ns, self.measures.load_bytes
        return moved / busy if busy and moved is not None and not self.moved_by_kernels else None
