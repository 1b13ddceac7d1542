"""What rows of a capture do not say: names, loads, stacks, counters that an export left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.roles import Role
from traceview.kinds import UNNAMED
from traceview.model import CallKind, Content, Direction, Kind
from traceview.report import Abstention

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.analysis.forwards import Forward
    from traceview.model import Trace

_AGAIN = "export the .nsys-rep again: nsys export --type sqlite"
_STACKS = "nsys profile --cudabacktrace=all:0, and an nsys that exports the call of each stack"
_BLOCKING = (int(CallKind.SYNC), int(CallKind.BLOCKING))


def gaps(trace: Trace, forwards: Sequence[Forward]) -> Iterator[Abstention]:
    """Yield a line for each kind of thing that some rows leave out although the capture holds such rows."""
    reasons = [reason for one in forwards if (reason := unseen_loads(trace, one)) is not None]
    if reasons:
        told = f"of {len(reasons)} of {len(forwards)} forwards: {reasons[0]}"
        measure = "loads: load_copy and load_gap, stalls for them, what hides behind them"
        yield Abstention(measure, told, "trace from the start: nsys profile --trace=cuda,nvtx")
    yield from _names(trace)
    stacks = Content.CALL_STACKS in trace.capture.captured and not any(stack.native for stack in trace.stacks)
    if stacks and np.isin(trace.calls.kind, _BLOCKING).any():
        reason = "none of the call stacks of this export belongs to a blocking call"
        yield Abstention("where blocking calls come from", reason, _STACKS)
    if Content.NIC_METRICS in trace.capture.captured and not trace.nics:
        reason = "the NIC metrics of this capture have no samples of RDMA bytes"
        yield Abstention(
            "RDMA receive and send", reason, "nsys profile --nic-metrics=true on an InfiniBand or RoCE NIC"
        )


def unseen_loads(trace: Trace, forward: Forward) -> str | None:
    """Return why a forward in which no load was found may have had some; None where it had some, or had none."""
    if len(forward.rows(Role.LOAD)):
        return None
    if Content.COPIES not in trace.capture.captured:
        return "the capture holds no copies: there were none, or they were not traced"
    operations = trace.operations
    last = int(operations.end[forward.rows(Role.COMPUTE)].max(initial=forward.start))
    beside = slice(*np.searchsorted(operations.start, (forward.start, last)).tolist())
    alone = (operations.direction[beside] == Direction.H2D) & (operations.launch[beside] < 0)
    count = int(np.count_nonzero(alone & (trace.stream_devices()[operations.stream[beside]] == forward.device)))
    return f"{count:,} copies beside it have no launch in the trace" if count else None


def _names(trace: Trace) -> Iterator[Abstention]:
    """Yield how many kernels, calls and ranges have no name: what is told by names is not found among them."""
    unnamed = np.array([text.startswith(UNNAMED) for text in trace.names] + [True], dtype=bool)
    kernels = trace.operations.name[trace.operations.kind == Kind.KERNEL]
    for what, names in (("kernels", kernels), ("API calls, and which of them block", trace.calls.name)):
        count = int(np.count_nonzero(unnamed[names]))
        if count:
            yield Abstention(f"names of {what}", f"{count:,} of {len(names):,} have none in this export", _AGAIN)
    empty = np.array([not text for text in trace.names], dtype=bool)
    count = int(np.count_nonzero(empty[trace.ranges.name])) if len(trace.ranges) else 0
    if count:
        yield Abstention("names of ranges", f"{count:,} of {len(trace.ranges):,} have none in this export", _AGAIN)
