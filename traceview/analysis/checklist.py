"""The field's questions about a layered load, in the order path, direction, mover, each answered from a report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from instrument.naming import STORAGE_READ
from traceview import units
from traceview.analysis.case import Thresholds
from traceview.analysis.doctor import NAMING_FIX
from traceview.analysis.link_causes import MOSTLY, find_pages
from traceview.analysis.paths import pages_by_node
from traceview.report_links import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.topology import Topology
    from traceview.report import Forward, Report

YES, NO, UNKNOWN = "yes", "no", "unknown"
_CUDA = "nsys profile --trace=cuda,nvtx"
_BUFFERS = "emit facts with the pool's buffers: instrument.facts.emit_facts(buffers=[HostBuffer(...)])"
_STORAGE = "put ranges `storage read` and `stage` around them: storage_read() and stage() of instrument.ranges"
_SMALL_BYTES = 1 << 20
"""A group of copies below this many bytes in all is no load."""


def check(report: Report, topology: Topology | None = None, thresholds: Thresholds | None = None) -> tuple[Answer, ...]:
    """Return one answer per question: yes, no or unknown, what it rests on, and what would tell where it is unknown."""
    asked = _Asked(report, topology, thresholds or Thresholds())
    return tuple(answer(asked) for answer in _QUESTIONS)


@dataclass(frozen=True)
class _Asked:
    """What the questions are answered from."""

    report: Report
    topology: Topology | None
    thresholds: Thresholds

    @property
    def measured(self) -> tuple[Forward, ...]:
        """Return the forwards that are not warm-up."""
        return tuple(forward for forward in self.report.forwards if not forward.warmup)


def _loaded(asked: _Asked) -> dict[str, int]:
    """Return the bytes loaded by kind of memory: of the measured forwards, of the whole trace where it has none."""
    found: Counter[str] = Counter()
    for forward in asked.measured:
        found.update(forward.load_memory)
    if not asked.measured:
        groups = [one for one in asked.report.copies if one.direction == "h2d" and one.n_bytes >= _SMALL_BYTES]
        for group in groups:
            found[group.memory] += group.n_bytes
    return dict(found)


def _pinned(asked: _Asked) -> Answer:
    question = "Is the source of the loads pinned?"
    loaded = _loaded(asked)
    known = {memory: n_bytes for memory, n_bytes in loaded.items() if memory != "unknown"}
    if not sum(known.values()):
        if loaded:
            return Answer("path", question, UNKNOWN, "the export does not tell memory kinds", _CUDA)
        if _kernels_load(asked):
            return _pinned_by_facts(asked, question)
        return Answer("path", question, UNKNOWN, "no loads from host memory were found", _CUDA)
    pageable, total = known.get("pageable", 0), sum(known.values())
    says = f"{units.size(pageable)} of {units.size(total)} loaded come from pageable memory"
    return Answer("path", question, NO if 2 * pageable > total else YES, says, "")


def _kernels_load(asked: _Asked) -> bool:
    summary = asked.report.summary
    return summary is not None and bool(summary.measures.load_busy_ns) and not _loaded(asked)


def _pinned_by_facts(asked: _Asked, question: str) -> Answer:
    """Answer for loads by kernels, which leave no kind of memory behind: what the facts say of the buffers."""
    buffers = (asked.report.trace.facts or {}).get("host_buffers")
    said = [one.get("pinned") for one in buffers if isinstance(one, dict)] if isinstance(buffers, list) else []
    if not said or None in said:
        return Answer("path", question, UNKNOWN, "kernels load, and leave no kind of memory behind", _BUFFERS)
    says = f"kernels load; pinned, by the facts: {sum(map(bool, said))} of {units.counted(len(said), 'buffer')}"
    return Answer("path", question, YES if all(said) else NO, says, "")


def _node(asked: _Asked) -> Answer:
    question = "Is the pool on the GPU's NUMA node?"
    facts = asked.report.trace.facts
    devices = {forward.device for forward in asked.measured} or {int(one["id"]) for one in asked.report.trace.devices}
    known = [pages for one in sorted(devices) if (pages := find_pages(facts, one, asked.topology)) is not None]
    if known:
        worst = max(known, key=lambda pages: pages.remote)
        says = f"{units.percent(worst.remote)} of the pages looked at are on another node than the GPU's ({worst.node})"
        return Answer("path", question, NO if worst.remote > MOSTLY else YES, says, "")
    nodes = sorted(pages_by_node(facts))
    if not nodes:
        return Answer("path", question, UNKNOWN, "the capture does not say where the pages are", _BUFFERS)
    on = f"node {nodes[0]}" if len(nodes) == 1 else f"nodes {', '.join(map(str, nodes))}"
    says = f"the pages looked at are on {on}; the GPU's node is not known"
    return Answer("path", question, UNKNOWN, says, "nvidia-smi topo -m > FILE on that machine, then --topology FILE")


def _overlaps(asked: _Asked) -> Answer:
    question = "Do load and compute run on different streams, and really overlap?"
    if asked.report.summary is None or asked.report.summary.measures.hidden is None:
        return Answer("direction", question, UNKNOWN, "no measured forward with a load", NAMING_FIX)
    measures = asked.report.summary.measures
    queued = measures.accounting["stream_queue"]
    says = (
        f"{units.percent(measures.hidden or 0.0)} of the load is hidden, {units.duration(queued)} queued on one stream"
    )
    same = any(finding.id == "same_stream" for finding in asked.report.findings)
    return Answer("direction", question, YES if (measures.hidden or 0.0) >= 0.5 and not same else NO, says, "")


def _syncs(asked: _Asked) -> Answer:
    question = "Is the forward free of unexpected synchronisation?"
    measured = {forward.index for forward in asked.measured}
    if "api_calls" in asked.report.trace.missing:
        return Answer("direction", question, UNKNOWN, "the capture holds no API calls", _CUDA)
    if not measured:
        return Answer("direction", question, UNKNOWN, "no measured forward", NAMING_FIX)
    own = [sync for sync in asked.report.syncs if sync.forward in measured and sync.accidental]
    count, cost = sum(sync.count for sync in own), sum(sync.cost_ns or 0 for sync in own)
    forwards = units.counted(len(measured), "forward")
    if not own:
        return Answer("direction", question, YES, f"no accidental blocking call in {forwards}", "")
    calls = units.counted(count, "accidental blocking call")
    says = f"{calls} in {forwards} {'costs' if count == 1 else 'cost'} {units.duration(cost)} in all"
    return Answer("direction", question, NO, says, "")


def _pieces(asked: _Asked) -> Answer:
    question = "Are the loads few large pieces?"
    layers = [layer for forward in asked.measured for layer in forward.layers if layer.load_pieces]
    if not layers:
        if _kernels_load(asked):
            return Answer("mover", question, UNKNOWN, "kernels load, and leave no pieces behind", "")
        return Answer("mover", question, UNKNOWN, "no layer whose load is copies", NAMING_FIX)
    worst = max(layers, key=lambda layer: layer.load_pieces or 0)
    most, mean = worst.load_pieces or 0, (worst.load_bytes or 0) / (worst.load_pieces or 1)
    limits = asked.thresholds
    cut_up = most >= limits.fragment_pieces and mean <= limits.fragment_bytes
    says = f"up to {units.counted(most, 'piece')} of {units.size(mean)} per layer"
    return Answer("mover", question, NO if cut_up else YES, says, "")


def _multiprocessors(asked: _Asked) -> Answer:
    question = "Do the loads leave the multiprocessors to compute?"
    if asked.report.summary is None:
        return Answer("mover", question, UNKNOWN, "no measured forward", NAMING_FIX)
    taken = next((finding for finding in asked.report.findings if finding.id == "sm_mover_contention"), None)
    if taken:
        return Answer("mover", question, NO, f"a mover kernel costs {units.duration(taken.cost_ns)} a forward", "")
    return Answer("mover", question, YES, "no mover kernel takes time from compute", "")


def _inbound(asked: _Asked) -> Answer:
    question = "Is the way into the GPU free of other traffic?"
    beside = [lane for lane in asked.report.lanes if lane.beside and lane.transfer_class.startswith("h2d")]
    slow = [lane for lane in beside if lane.verdict in ("inbound_contention", "duplex_slowdown")]
    harmless = ", ".join(dict.fromkeys(str(lane.beside) for lane in beside if lane.verdict == "no_conflict"))
    also = f"; harmless beside it: {harmless}" if harmless else ""
    if slow:
        worst = max(slow, key=lambda lane: lane.slowdown or 0.0)
        says = f"{worst.beside} slows the loads by {units.percent(worst.slowdown or 0.0)} ({worst.verdict})"
        return Answer("direction", question, NO, says + also, "")
    unexplained = sum(one.unexplained_bytes for one in asked.report.inbound)
    if asked.report.inbound:
        says = f"{units.size(unexplained)} came in over PCIe that no transfer of the trace explains"
        return Answer("direction", question, NO if unexplained >= _SMALL_BYTES else YES, says + also, "")
    sampled = "gpu_metrics" in asked.report.trace.captured
    fix = "traceview report TRACE --metrics" if sampled else "nsys profile --gpu-metrics-devices=all, then --metrics"
    return Answer(
        "direction", question, UNKNOWN, f"no traced transfer slows the loads; counters were not read{also}", fix
    )


def _straight(asked: _Asked) -> Answer:
    question = "Does storage write straight into the registered pool?"
    if not asked.report.storage:
        return Answer("path", question, UNKNOWN, "no range `storage read` in the trace", _STORAGE)
    staged = sum(not one.straight for one in asked.report.storage)
    forwards = units.counted(len(asked.report.storage), "forward")
    says = f"{staged} of {forwards} {'stages' if staged == 1 else 'stage'} what storage delivered"
    return Answer("path", question, NO if staged else YES, says, "")


def _storage_apart(asked: _Asked) -> Answer:
    question = "Do storage reads and loads keep out of each other's way?"
    if not asked.report.storage:
        return Answer("path", question, UNKNOWN, "no range `storage read` in the trace", _STORAGE)
    bounds = [one.bounded_by for one in asked.report.storage]
    most = max(set(bounds), key=bounds.count)
    bound = f"{most} takes longest in {bounds.count(most)} of {units.counted(len(bounds), 'forward')}"
    pairs = [
        lane
        for lane in asked.report.lanes
        if lane.transfer_class.startswith("h2d") and lane.beside == STORAGE_READ and lane.slowdown is not None
    ]
    if pairs:
        worst = max(pairs, key=lambda lane: lane.slowdown or 0.0)
        lost = max(worst.slowdown or 0.0, 0.0)
        slower = worst.verdict in ("inbound_contention", "slowed_elsewhere")
        says = f"loads lose {units.percent(lost)} of their rate while storage is read; {bound}"
        return Answer("path", question, NO if slower else YES, says, "")
    says = f"too few loads run beside a storage read to compare; {bound}"
    return Answer("path", question, UNKNOWN, says, "compare a capture without storage: traceview diff")


_QUESTIONS: tuple[Callable[[_Asked], Answer], ...] = (
    _pinned,
    _node,
    _straight,
    _storage_apart,
    _overlaps,
    _syncs,
    _inbound,
    _pieces,
    _multiprocessors,
)
