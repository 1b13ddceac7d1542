"""What a trace can answer, measure by measure, and what a new capture would have to record for the rest."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.gaps import gaps
from traceview.analysis.links import stated_ceiling
from traceview.analysis.overlap import PAIRED_STREAMS
from traceview.analysis.paths import PRESUMED
from traceview.analysis.places import used
from traceview.analysis.transfers import SMS
from traceview.model import CallKind, Content, Direction, Kind, Memory
from traceview.report import Abstention
from traceview.units import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.analysis.forwards import Forward
    from traceview.analysis.links import LinkOptions
    from traceview.analysis.traffic import MachineOptions, Traffic
    from traceview.model import Trace

_CUDA = "nsys profile --trace=cuda,nvtx"
_STACKS = "nsys profile --sample=process-tree --cudabacktrace=all:0 --python-backtrace=cuda"
PYTHON_FIX = (
    "nsys profile --python-backtrace=cuda --cudabacktrace=all:0 --sample=process-tree, then "
    "nsys export --include-blobs=true --include-json=true"
)
NAMING_FIX = "name the work with NVTX ranges: 'forward 0', 'load layer 0', 'compute layer 0' (see instrument.ranges)"

FIXES = {
    Content.KERNELS: _CUDA,
    Content.COPIES: _CUDA,
    Content.API_CALLS: _CUDA,
    Content.NVTX: f"{_CUDA}, and {NAMING_FIX}",
    Content.SYNCHRONISATIONS: _CUDA,
    Content.EVENT_RECORDS: f"{_CUDA} with nsys 2022.1 or newer",
    Content.CALL_STACKS: _STACKS,
    Content.GPU_METRICS: "nsys profile --gpu-metrics-devices=all",
    Content.NIC_METRICS: "nsys profile --nic-metrics=true",
}

_BY_NAME = "forwards and layers by name"
_BY_EVENTS = "layers by events, loads submitted by another thread"

NEEDS = {
    "overlap of copies with compute": (Content.KERNELS, Content.COPIES),
    "copies and segmentation": (Content.COPIES,),
    "blocking calls": (Content.API_CALLS,),
    _BY_NAME: (Content.NVTX, Content.API_CALLS, Content.KERNELS),
    "host time in the accounting": (Content.API_CALLS,),
    _BY_EVENTS: (Content.EVENT_RECORDS, Content.SYNCHRONISATIONS),
    "scalar read-backs": (Content.API_CALLS, Content.COPIES),
    "where blocking calls come from": (Content.CALL_STACKS,),
    "inbound PCIe traffic beside the copies": (Content.GPU_METRICS,),
    "RDMA receive and send": (Content.NIC_METRICS,),
}
"""Each measure and the data that it needs."""


def abstentions(
    trace: Trace,
    forwards: Sequence[Forward],
    machine: MachineOptions | None = None,
    traffic: Sequence[Traffic] = (),
) -> tuple[Abstention, ...]:
    """Return what cannot be judged: measures whose data is missing, then what weakens those that can be had.

    ``machine`` is what the user says about the machine, ``traffic`` what was found to use its links.
    """
    link = machine.link if machine else None
    return (
        *_lacking(trace),
        *_weaknesses(trace, forwards),
        *gaps(trace, forwards),
        *_metrics(trace, link),
        *_unknown_traffic(trace, traffic),
    )


def answered(trace: Trace, forwards: Sequence[Forward]) -> tuple[str, ...]:
    """Return the measures that can be had: the trace holds all their data, and what has to be named is."""
    lacking = {abstention.measure for abstention in _lacking(trace)}
    if not any("nvtx" in (forward.layers_from or "") for forward in forwards):
        lacking.add(_BY_NAME)
    return tuple(measure for measure in NEEDS if measure not in lacking)


def _lacking(trace: Trace) -> Iterator[Abstention]:
    for measure, needs in NEEDS.items():
        lacking = [content for content in needs if content in trace.capture.missing]
        if lacking:
            words = " and no ".join(content.value.replace("_", " ") for content in lacking)
            # of fixes that say the same with more or less beside it, the one that says more
            fixes = list(dict.fromkeys(FIXES[content] for content in lacking))
            fix = "; ".join(one for one in fixes if not any(one != other and one in other for other in fixes))
            yield Abstention(measure, f"the capture holds no {words}: there were none, or they were not traced", fix)


def _weaknesses(trace: Trace, forwards: Sequence[Forward]) -> Iterator[Abstention]:
    if not forwards and Content.NVTX in trace.capture.captured and not _lacks_compute(trace):
        reason = (
            "no range is named as a forward that launches compute" if len(trace.ranges) else "it holds no NVTX range"
        )
        events = "; or --layers-from events" if len(trace.event_waits) and len(trace.event_records) else ""
        yield Abstention("forwards, accounting, layers", reason, NAMING_FIX + events)
    if forwards and all(forward.layers_from is None for forward in forwards):
        measures = "layers, first layer, exposed load, ideal, efficiency"
        yield Abstention(measures, "no range is named as a layer's load or compute", NAMING_FIX)
    streams = [trace.streams[one] for one in used(trace.operations.stream)]
    places = Counter((stream.process, stream.device) for stream in streams)
    if max(places.values(), default=0) > PAIRED_STREAMS:
        reason = f"only the {PAIRED_STREAMS} busiest streams of a device are paired with each other"
        yield Abstention("overlap of the other streams", reason, "--process PID, --device N or --window A:B")
    if (trace.operations.kind == Kind.GRAPH).any():
        reason = "CUDA graphs were captured whole: each is one block of compute, whatever it holds"
        yield Abstention("what runs inside CUDA graphs", reason, "nsys profile --cuda-graph-trace=node")
    if trace.capture.facts is None:
        reason = "the capture holds no facts mark"
        yield Abstention(
            "link ceiling, pages by NUMA node", reason, "call instrument.facts.emit_facts() in the program"
        )
    orphans = int(np.count_nonzero(trace.operations.launch < 0))
    if orphans:
        reason = f"{orphans:,} of {counted(len(trace.operations), 'operation')} have no launch in the trace"
        kernels = np.isin(trace.operations.kind[trace.operations.launch < 0], (Kind.KERNEL, Kind.GRAPH)).any()
        left = ", and a forward in which many such kernels run is left out" if kernels else ""
        yield Abstention("ranges of operations without a launch", reason + left, f"trace from the start: {_CUDA}")
    if _loads_of_unknown_memory(trace):
        reason = "the export does not tell the kind of memory that copies read: pageable loads look like slow ones"
        yield Abstention("pinned or pageable source", reason, f"{_CUDA} and export anew with the same nsys")
    yield from _stack_weaknesses(trace)
    for text in trace.capture.diagnostics:
        unsupported = "not supported" in text
        fix = "a newer nsys, which knows this driver" if unsupported else "let the process end by itself"
        yield Abstention("a complete capture", f"the profiler says: {text}", fix)


def _stack_weaknesses(trace: Trace) -> Iterator[Abstention]:
    """Yield what call stacks do not tell, where there are any."""
    if trace.stacks and not any(stack.python for stack in trace.stacks):
        reason = "the call stacks of this export have no Python frames"
        yield Abstention("lines of Python that block", reason, PYTHON_FIX)
    blocking = np.isin(trace.calls.kind, (CallKind.SYNC, CallKind.BLOCKING))
    bare = int(np.count_nonzero(blocking & (trace.calls.stack < 0)))
    if trace.stacks and bare:
        reason = f"{bare:,} of {counted(int(blocking.sum()), 'blocking call')} have no stack in the capture"
        yield Abstention("where the other blocking calls come from", reason, _STACKS)


def _lacks_compute(trace: Trace) -> bool:
    """Return whether the capture lacks what forwards are made of, whatever is named: ``_lacking`` says so."""
    missing = trace.capture.missing
    graphs = (trace.operations.kind == Kind.GRAPH).any()
    return Content.API_CALLS in missing or (Content.KERNELS in missing and not graphs)


def _loads_of_unknown_memory(trace: Trace) -> bool:
    """Return whether nobody knows of most bytes copied from the host whether their memory was pinned."""
    operations = trace.operations
    loads = operations.direction == Direction.H2D
    untold = operations.n_bytes[loads & (operations.memory == Memory.UNKNOWN)].sum()
    return bool(2 * untold > operations.n_bytes[loads].sum())


def _metrics(trace: Trace, link: LinkOptions | None) -> Iterator[Abstention]:
    """Yield why sampled counters do not tell what else came into a device."""
    measure = "unexplained inbound traffic"
    if Content.GPU_METRICS not in trace.capture.captured:
        return
    if trace.links is None:
        yield Abstention(measure, "GPU metrics are large, so they were not read", "traceview report TRACE --metrics")
        return
    if not any(len(one.received) for one in trace.links):
        reason = "the GPU metrics of this capture have no PCIe counter"
        yield Abstention(measure, reason, "capture with the default set of --gpu-metrics-set")
    for one in trace.links:
        if len(one.received) and stated_ceiling(trace, one.device, link) is None:
            reason = f"the counter gives percent of the PCIe link of GPU {one.device}, whose speed is not known"
            yield Abstention(measure, reason, "--pcie GENxLANES, or call instrument.facts.emit_facts() in the program")


def _unknown_traffic(trace: Trace, traffic: Sequence[Traffic]) -> Iterator[Abstention]:
    """Yield what is not known of transfers that were found."""
    if any(one.transfers.mover == SMS and one.transfers.total_bytes is None for one in traffic):
        fix = "give n_bytes to the range of a load (instrument.ranges.load), or nsys profile --gpu-metrics-devices=all"
        yield Abstention("bytes and rate of loading kernels", "no range says how many bytes they move", fix)
    if any(one.transfers.peer is not None and one.path.origin == PRESUMED for one in traffic):
        reason = "their rate would suit both PCIe and NVLink"
        yield Abstention("links of the peer copies", reason, "nvidia-smi topo -m > FILE, then --topology FILE")
    if trace.nics and len(trace.capture.devices) > 1 and any(one.path.origin == PRESUMED for one in _remote(traffic)):
        reason = "nothing says which GPU is near which NIC"
        yield Abstention("GPUs that RDMA traffic reaches", reason, "nvidia-smi topo -m > FILE, then --topology FILE")


def _remote(traffic: Sequence[Traffic]) -> Iterator[Traffic]:
    return (one for one in traffic if one.transfers.nic is not None)
