"""A trace as plain columns: what the reader hands to every analysis.

Column containers are frozen dataclasses of numpy arrays of one length. Times are integer ns on the trace's own
timeline. An index of -1 means "none"; the container it points into is named beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

# the words of the columns are part of the model
from traceview.kinds import CallKind as CallKind
from traceview.kinds import Content as Content  # noqa: TC001 - exported again
from traceview.kinds import Direction as Direction
from traceview.kinds import Kind as Kind
from traceview.kinds import Memory as Memory

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Columns:
    """Arrays of one length; a row is what stands at one index of all of them."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def take(self, rows: Any) -> Self:
        """Return the same columns with only ``rows``: an index array, a boolean mask or a slice."""
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True)
class Operations(Columns):
    """Work on the GPU, sorted by start, then end."""

    start: Ints
    end: Ints
    kind: Ints
    """:class:`Kind`"""
    stream: Ints
    """index into ``Trace.streams``"""
    launch: Ints
    """index into ``Trace.calls`` of the call that submitted it, or -1"""
    name: Ints
    """index into ``Trace.names``; of copies and memsets -1"""
    shape: Ints
    """launch shape of a kernel (grid and block packed into one number), else 0"""
    n_bytes: Ints
    """bytes copied or set, else 0"""
    pieces: Ints
    """copies that the row stands for: 1, or the size of a batch; 0 for what is no copy"""
    direction: Ints
    """:class:`Direction`"""
    memory: Ints
    """:class:`Memory`"""
    source: Ints
    """device that a copy reads from, or -1 for the host or unknown"""
    target: Ints
    """device that a copy writes to, or -1 for the host or unknown"""


@dataclass(frozen=True)
class Calls(Columns):
    """API calls, sorted by start; a call that the capture recorded twice is one row."""

    start: Ints
    end: Ints
    thread: Ints
    """index into ``Trace.threads``"""
    name: Ints
    """index into ``Trace.names``: the documented name, without ABI suffix"""
    kind: Ints
    """:class:`CallKind`"""
    stack: Ints
    """index into ``Trace.stacks``, or -1; only calls that block the host have theirs looked up"""


@dataclass(frozen=True)
class Ranges(Columns):
    """NVTX push/pop and start/end ranges, sorted by start, then the longer one first."""

    start: Ints
    end: Ints
    thread: Ints
    """index into ``Trace.threads`` of the thread that opened it"""
    name: Ints
    """index into ``Trace.names``"""
    domain: Ints
    """index into ``Trace.names``; -1 is the default domain"""
    payload: Ints
    """the integer that the range carries, or -1"""


@dataclass(frozen=True)
class Records(Columns):
    """Event records, or waits of a stream for an event, sorted by their call."""

    call: Ints
    """index into ``Trace.calls``, or -1"""
    stream: Ints
    """index into ``Trace.streams``: the stream that records or that waits"""
    event: Ints
    """the event's id, unique in its context for as long as the event lives"""
    sync: Ints
    """id that pairs a wait with its record, or -1 where the export has none"""


@dataclass(frozen=True)
class Migrations(Columns):
    """Unified-memory migrations, sorted by start; not operations."""

    start: Ints
    end: Ints
    process: Ints
    device: Ints
    n_bytes: Ints
    direction: Ints
    """:class:`Direction`"""
    cause: Ints
    """Nsight's number: 1 prefetch, 2 page fault, 3 speculative, 4 eviction, 5 access counters, 0 unknown"""


@dataclass(frozen=True)
class Samples(Columns):
    """Samples of a counter in time order; a value stands for the time from ``start`` to ``end``."""

    start: Ints
    end: Ints
    value: Ints


@dataclass(frozen=True)
class LinkSamples:
    """How busy the PCIe link of a device was, in percent of its peak, protocol overhead included."""

    device: int
    received: Samples
    """into the device"""
    sent: Samples
    """out of the device"""


@dataclass(frozen=True)
class NicSamples:
    """RDMA traffic of a NIC's port in one direction; values are bytes."""

    nic: str
    port: int
    direction: str
    """``receive`` or ``send``"""
    samples: Samples


@dataclass(frozen=True, order=True)
class Stream:
    """A queue on a device; ids alone are not unique, so all five numbers name it."""

    process: int
    device: int
    context: int
    green_context: int
    number: int

    @property
    def label(self) -> str:
        """Return ``pid/dev/stream``."""
        return f"{self.process}/{self.device}/{self.number}"


@dataclass(frozen=True, order=True)
class Thread:
    """A host thread."""

    process: int
    number: int


@dataclass(frozen=True)
class NativeFrame:
    """A function on the call stack of a compiled program, and the file that it is in."""

    symbol: str
    module: str


@dataclass(frozen=True)
class PythonFrame:
    """A line of Python on a call stack."""

    function: str
    file: str
    line: int


@dataclass(frozen=True)
class Stack:
    """Who called, innermost first: compiled functions, and the lines of Python outside of them where known."""

    native: tuple[NativeFrame, ...]
    python: tuple[PythonFrame, ...]


@dataclass(frozen=True)
class KeptForwards:
    """Which forwards of a longer capture a slimmed one holds, so that they keep their numbers and their roles."""

    first: int
    """index of the first forward"""
    warmup: tuple[int, ...]
    """indices of those that are warm-up"""


@dataclass(frozen=True)
class Capture:
    """What the file says about itself."""

    path: Path
    product_version: str | None
    schema_version: str | None
    devices: Mapping[int, str | None]
    """GPU name by device id, None where the file names none"""
    processes: tuple[int, ...]
    captured: tuple[Content, ...]
    missing: tuple[Content, ...]
    graph_mode: str | None
    """``graph`` or ``node`` where the capture says how CUDA graphs were traced"""
    diagnostics: tuple[str, ...]
    """what the profiler itself reported as wrong"""
    facts: Mapping[str, Any] | None
    """facts that the profiled process recorded about its machine"""
    kept: KeptForwards | None = None
    """of a slimmed capture: which forwards of the whole it holds"""
    session_start_ns: int | None = None
    """when the trace's timeline began, in ns of UTC since 1970 by the clock of the machine; None where nobody says"""


@dataclass(frozen=True)
class Trace:
    """One export, or the selected part of one."""

    capture: Capture
    names: tuple[str, ...]
    streams: tuple[Stream, ...]
    threads: tuple[Thread, ...]
    operations: Operations
    calls: Calls
    ranges: Ranges
    event_records: Records
    event_waits: Records
    stream_syncs: Records
    """host waits for a whole stream; ``event`` and ``sync`` are -1"""
    migrations: Migrations
    stacks: tuple[Stack, ...] = ()
    nics: tuple[NicSamples, ...] = ()
    links: tuple[LinkSamples, ...] | None = None
    """None where GPU metrics were not asked for"""

    @property
    def start_ns(self) -> int:
        """Return when the first operation, call or range starts, 0 in an empty trace."""
        return min((int(part.start[0]) for part in self._timed if len(part)), default=0)

    @property
    def end_ns(self) -> int:
        """Return when the last operation, call or range ends, 0 in an empty trace."""
        return max((int(part.end.max()) for part in self._timed if len(part)), default=0)

    @property
    def _timed(self) -> tuple[Operations, Calls, Ranges]:
        return self.operations, self.calls, self.ranges

    def operation_device(self) -> Ints:
        """Return the device id of each operation."""
        return self.stream_devices()[self.operations.stream]

    def operation_process(self) -> Ints:
        """Return the process id of each operation."""
        return self.stream_processes()[self.operations.stream]

    def stream_devices(self) -> Ints:
        """Return the device id of each stream."""
        return np.array([stream.device for stream in self.streams], dtype=np.int64)

    def stream_processes(self) -> Ints:
        """Return the process id of each stream."""
        return np.array([stream.process for stream in self.streams], dtype=np.int64)
