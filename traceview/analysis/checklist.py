"""The field's questions about a layered load, in the order path, direction, mover, each answered from a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traceview import units
from traceview.analysis.link_causes import MOSTLY, remote_share
from traceview.report_links import Answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.report import CopyGroup, Report

YES, NO, UNKNOWN = "yes", "no", "unknown"
_CUDA = "nsys profile --trace=cuda,nvtx"
_SMALL_BYTES = 1 << 20
"""A group of copies below this many bytes in all is no load."""
_MANY_PIECES = 16


def check(report: Report) -> tuple[Answer, ...]:
    """Return one answer per question: yes, no or unknown, what it rests on, and what would tell where it is unknown."""
    return tuple(answer(report) for answer in _QUESTIONS)


def _loads(report: Report) -> list[CopyGroup]:
    return [group for group in report.copies if group.direction == "h2d" and group.n_bytes >= _SMALL_BYTES]


def _pinned(report: Report) -> Answer:
    question = "Is the source of the loads pinned?"
    loads = _loads(report)
    known = [group for group in loads if group.memory != "unknown"]
    if not known:
        reason = "no host-to-device copies in the trace" if not loads else "the export does not tell memory kinds"
        return Answer("path", question, UNKNOWN, reason, _CUDA)
    pageable = sum(group.n_bytes for group in known if group.memory == "pageable")
    total = sum(group.n_bytes for group in known)
    says = f"{units.size(pageable)} of {units.size(total)} loaded come from pageable memory"
    return Answer("path", question, NO if 2 * pageable > total else YES, says, "")


def _node(report: Report) -> Answer:
    question = "Is the pool on the GPU's NUMA node?"
    shares = [remote_share(report.trace.facts, int(device["id"])) for device in report.trace.devices]
    known = [share for share in shares if share is not None]
    if not known:
        fix = "emit facts with the pool's buffers: instrument.facts.emit_facts(buffers=[HostBuffer(...)])"
        return Answer("path", question, UNKNOWN, "the capture does not say where pages and GPU are", fix)
    says = f"{units.percent(max(known))} of the pages looked at are on another node than the GPU's"
    return Answer("path", question, NO if max(known) > MOSTLY else YES, says, "")


def _overlaps(report: Report) -> Answer:
    question = "Do load and compute run on different streams, and really overlap?"
    if report.summary is None or report.summary.measures.hidden is None:
        return Answer("direction", question, UNKNOWN, "no measured forward with a load", "name forwards and layers")
    measures = report.summary.measures
    queued = measures.accounting["stream_queue"]
    says = (
        f"{units.percent(measures.hidden or 0.0)} of the load is hidden, {units.duration(queued)} queued on one stream"
    )
    same = any(finding.id == "same_stream" for finding in report.findings)
    return Answer("direction", question, YES if (measures.hidden or 0.0) >= 0.5 and not same else NO, says, "")


def _syncs(report: Report) -> Answer:
    question = "Is the forward free of unexpected synchronisation?"
    measured = {forward.index for forward in report.forwards if not forward.warmup}
    if not measured or "api_calls" in report.trace.missing:
        return Answer("direction", question, UNKNOWN, "no measured forward, or no API calls", _CUDA)
    own = [sync for sync in report.syncs if sync.forward in measured and sync.accidental]
    count, cost = sum(sync.count for sync in own), sum(sync.cost_ns or 0 for sync in own)
    says = f"{count:,} accidental blocking calls in {len(measured)} forwards cost {units.duration(cost)} in all"
    return Answer("direction", question, NO if own else YES, says, "")


def _pieces(report: Report) -> Answer:
    question = "Are the loads few large pieces?"
    layers = [layer for forward in report.forwards if not forward.warmup for layer in forward.layers]
    pieces = [layer.load_pieces for layer in layers if layer.load_pieces]
    if not pieces:
        return Answer("mover", question, UNKNOWN, "no layer whose load is copies", "name layers, or load by copies")
    most = max(pieces)
    says = f"up to {most:,} {'piece' if most == 1 else 'pieces'} per layer"
    return Answer("mover", question, NO if most >= _MANY_PIECES else YES, says, "")


def _multiprocessors(report: Report) -> Answer:
    question = "Do the loads leave the multiprocessors to compute?"
    if report.summary is None:
        return Answer("mover", question, UNKNOWN, "no measured forward", "name forwards and layers")
    taken = next((finding for finding in report.findings if finding.id == "sm_mover_contention"), None)
    if taken:
        return Answer("mover", question, NO, f"a mover kernel costs {units.duration(taken.cost_ns)} a forward", "")
    return Answer("mover", question, YES, "no mover kernel takes time from compute", "")


def _inbound(report: Report) -> Answer:
    question = "Is the way into the GPU free of other traffic?"
    beside = [lane for lane in report.lanes if lane.beside and lane.transfer_class.startswith("h2d")]
    slow = [lane for lane in beside if lane.verdict in ("inbound_contention", "duplex_slowdown")]
    harmless = ", ".join(dict.fromkeys(str(lane.beside) for lane in beside if lane.verdict == "no_conflict"))
    also = f"; harmless beside it: {harmless}" if harmless else ""
    if slow:
        worst = max(slow, key=lambda lane: lane.slowdown or 0.0)
        says = f"{worst.beside} slows the loads by {units.percent(worst.slowdown or 0.0)} ({worst.verdict})"
        return Answer("direction", question, NO, says + also, "")
    unexplained = sum(one.unexplained_bytes for one in report.inbound)
    if report.inbound:
        says = f"{units.size(unexplained)} came in over PCIe that no transfer of the trace explains"
        return Answer("direction", question, NO if unexplained >= _SMALL_BYTES else YES, says + also, "")
    fix = "capture with --gpu-metrics-devices=all and report with --metrics"
    return Answer(
        "direction", question, UNKNOWN, f"no traced transfer slows the loads; counters were not read{also}", fix
    )


def _straight(report: Report) -> Answer:
    question = "Does storage write straight into the registered pool?"
    if not report.storage:
        return Answer(
            "path", question, UNKNOWN, "no range `storage read` in the trace", "name the storage read and stage"
        )
    staged = sum(not one.straight for one in report.storage)
    says = f"{staged} of {len(report.storage)} forwards stage what they read"
    return Answer("path", question, NO if staged else YES, says, "")


def _storage_apart(report: Report) -> Answer:
    question = "Do storage reads and loads keep out of each other's way?"
    if not report.storage:
        return Answer(
            "path", question, UNKNOWN, "no range `storage read` in the trace", "name the storage read and stage"
        )
    bounds = [one.bounded_by for one in report.storage]
    most = max(set(bounds), key=bounds.count)
    says = f"bounded by {most} in {bounds.count(most)} of {len(bounds)} forwards"
    return Answer("path", question, UNKNOWN, says, "compare a capture without storage: traceview diff")


_QUESTIONS: tuple[Callable[[Report], Answer], ...] = (
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
