"""The field's questions: answered from the loads themselves, and with the remedy where nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

import traceview
from traceview.analysis.case import Thresholds
from traceview.analysis.checklist import check
from traceview.analysis.report import build_report
from traceview.analysis.topology import parse_topology
from traceview.report_links import Answer

US = 1_000
MIB = 1 << 20
SAMPLES = Path(__file__).parents[2] / "sample_traces"
PINNED, NODE, SYNCS, INBOUND, PIECES = (
    "Is the source of the loads pinned?",
    "Is the pool on the GPU's NUMA node?",
    "Is the forward free of unexpected synchronisation?",
    "Is the way into the GPU free of other traffic?",
    "Are the loads few large pieces?",
)


def answers(name: str) -> dict[str, Answer]:
    return {one.question: one for one in check(build_report(traceview.read(SAMPLES / f"{name}.sqlite")))}


def forward(builder: TraceBuilder, *, pieces: int = 1, memory: str = "pinned", syncs: int = 0) -> TraceBuilder:
    """Write a measured forward of one layer, loaded in pieces of 4 MiB."""
    at = 10_000 * US
    for piece in range(pieces):
        begin = at + piece * 100 * US
        builder.copy(begin, begin + 90 * US, "h2d", 4 * MIB, stream=13, memory=memory, call=(begin - 50, begin - 40))
    end = at + pieces * 100 * US
    builder.range("load layer 0", at - 60, end)
    for sync in range(syncs):
        builder.device_sync(call=(end + 10 + sync * 10, end + 15 + sync * 10))
    builder.kernel(end + 100 * US, end + 200 * US, stream=7, call=(end + 50 * US, end + 51 * US))
    builder.range("compute layer 0", end + 49 * US, end + 52 * US)
    return builder.range("forward 0", at - 100, end + 300 * US)


def asked(builder: TraceBuilder, folder: Path, **thresholds: float) -> dict[str, Answer]:
    report = build_report(read_back(builder, folder))
    return {one.question: one for one in check(report, None, Thresholds(**thresholds))}


def test_copies_outside_the_forwards_say_nothing_of_the_loads(tmp_path: Path) -> None:
    """A program may fill its pool from pageable memory once, and load from pinned memory ever after."""
    builder = forward(TraceBuilder())
    builder.copy(0, 5_000 * US, "h2d", 512 * MIB, stream=20, memory="pageable", call=(0, 5_000 * US))
    found = asked(builder, tmp_path)[PINNED]
    assert (found.answer, found.evidence) == ("yes", "0 B of 4 MiB loaded come from pageable memory")


def test_an_export_without_memory_kinds_leaves_it_open(tmp_path: Path) -> None:
    found = asked(forward(TraceBuilder(), memory="unknown"), tmp_path)[PINNED]
    assert (found.answer, found.evidence) == ("unknown", "the export does not tell memory kinds")


def test_loads_by_kernels_are_as_pinned_as_the_facts_say() -> None:
    found = answers("sm")
    assert (found[PINNED].answer, found[PINNED].evidence) == (
        "yes",
        "kernels load; pinned, by the facts: 1 of 1 buffer",
    )
    assert (found[PIECES].answer, found[PIECES].evidence) == ("unknown", "kernels load, and leave no pieces behind")


def test_a_node_that_the_facts_do_not_tell_is_asked_of_the_topology() -> None:
    report = build_report(traceview.read(SAMPLES / "healthy.sqlite"))
    [found] = [one for one in check(report) if one.question == NODE]
    assert found.answer == "unknown"
    assert found.evidence == "the pages looked at are on node 0; the GPU's node is not known"
    assert "--topology FILE" in found.fix
    told = {}
    for node in (0, 1):
        topology = parse_topology(f"\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\t{node}\n")
        told[node] = next(one.answer for one in check(report, topology) if one.question == NODE)
    assert told == {0: "yes", 1: "no"}


@pytest.mark.parametrize(
    ("syncs", "said"),
    [(0, "no accidental blocking call in 1 forward"), (1, "1 accidental blocking call in 1 forward costs")],
)
def test_blocking_calls_are_counted_in_words_that_agree(syncs: int, said: str, tmp_path: Path) -> None:
    found = asked(forward(TraceBuilder(), syncs=syncs), tmp_path)[SYNCS]
    assert found.answer == ("no" if syncs else "yes")
    assert found.evidence.startswith(said)


def test_many_large_pieces_are_not_cut_up_unless_the_thresholds_say_so(tmp_path: Path) -> None:
    builder = forward(TraceBuilder(), pieces=20)
    assert asked(builder, tmp_path)[PIECES].answer == "yes"
    assert asked(builder, tmp_path, fragment_bytes=8 * MIB)[PIECES].answer == "no"
    assert asked(builder, tmp_path, fragment_bytes=8 * MIB, fragment_pieces=32)[PIECES].answer == "yes"


def test_counters_that_were_sampled_have_to_be_read() -> None:
    assert answers("metrics")[INBOUND].fix == "traceview report TRACE --metrics"
    assert answers("healthy")[INBOUND].fix.startswith("nsys profile --gpu-metrics-devices=all")


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.sqlite")), ids=lambda path: path.stem)
def test_what_is_unknown_says_what_would_tell(path: Path) -> None:
    found = check(build_report(traceview.read(path)))
    assert len(found) == 9
    assert [
        one.question for one in found if one.answer == "unknown" and not one.fix and "kernels" not in one.evidence
    ] == []
    assert json.dumps([vars(one) for one in found])
