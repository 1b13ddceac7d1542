"""What findings rest on: their numbers, their places, and words that agree with them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.report import build_report

if TYPE_CHECKING:
    from traceview.report import Finding

US = 1_000
MIB = 1 << 20
COMPUTE, LOAD = 7, 13


def findings(builder: TraceBuilder, folder: Path) -> dict[str, Finding]:
    return {finding.id: finding for finding in build_report(read_back(builder, folder)).findings}


def late_forward(builder: TraceBuilder, at: int, number: int, *, inside: str) -> None:
    """Write a forward that computes 100 us, after 300 us in which its host is inside a range."""
    builder.copy(at, at + 100 * US, "h2d", 4 * MIB, stream=LOAD, call=(at - 50, at - 40))
    builder.range("load layer 0", at - 60, at - 30)
    builder.range(inside, at - 20, at + 390 * US)
    builder.kernel(at + 400 * US, at + 500 * US, stream=COMPUTE, call=(at + 395 * US, at + 396 * US))
    builder.range("compute layer 0", at + 394 * US, at + 397 * US)
    builder.range(f"forward {number}", at - 100, at + 501 * US)


def test_host_bound_names_the_range_that_the_host_is_inside(tmp_path: Path) -> None:
    builder = TraceBuilder()
    late_forward(builder, 10_000 * US, 0, inside="tokenise")
    found = findings(builder, tmp_path)["host_bound"]
    assert "the host is inside tokenise (290 µs)" in found.evidence
    assert "CUDA graphs" in found.advice


def test_host_that_reads_from_storage_is_told_to_read_ahead(tmp_path: Path) -> None:
    builder = TraceBuilder()
    late_forward(builder, 10_000 * US, 0, inside="storage read")
    found = findings(builder, tmp_path)["host_bound"]
    assert "the host is inside storage read (290 µs)" in found.evidence
    assert found.advice.startswith("Read from storage before the forward")


def test_calls_are_evidence_of_the_cause_that_they_are_charged_to(tmp_path: Path) -> None:
    """A pageable load blocks as cudaMalloc does, but mending one does not mend the other."""
    builder = TraceBuilder()
    for number in (-1, 0):
        now = at = (number + 2) * 100_000 * US
        for layer in range(2):
            builder.copy(now + 10, now + 500 * US, "h2d", 4 * MIB, memory="pageable", call=(now, now + 490 * US))
            builder.range(f"load layer {layer}", now - 5, now + 491 * US)
            now += 500 * US
        builder.api("cudaMalloc_v3020", now, now + 300 * US)
        for layer in range(2):
            builder.kernel(now + 310 * US, now + 410 * US, stream=COMPUTE, call=(now + 301 * US, now + 302 * US))
            builder.range(f"compute layer {layer}", now + 300 * US, now + 303 * US)
            now += 120 * US
        builder.range(f"forward {number}", at - 10, now + 400 * US)
    found = findings(builder, tmp_path)
    assert found["implicit_sync"].evidence[0] == "1 call in forward 0 (index 1) blocks the host for 300 µs"
    assert "cudaMalloc" in found["implicit_sync"].evidence[1]
    assert found["pageable_source"].evidence[0] == "8 MiB in 2 pageable copies in forward 0 (index 1)"


def test_a_finding_without_a_known_rate_says_what_is_left_at_most(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in (-1, 0):
        at = (number + 2) * 100_000 * US
        builder.copy(at + 10, at + 500 * US, "h2d", 4 * MIB, memory="pageable", call=(at, at + 490 * US))
        builder.range("load layer 0", at - 5, at + 491 * US)
        builder.copy(
            at + 510 * US, at + 990 * US, "h2d", 4 * MIB, memory="pageable", call=(at + 500 * US, at + 980 * US)
        )
        builder.range("load layer 1", at + 500 * US - 5, at + 981 * US)
        for layer in range(2):
            begin = at + (1_000 + 110 * layer) * US
            builder.kernel(begin, begin + 100 * US, stream=COMPUTE, call=(begin - 5 * US, begin - 4 * US))
            builder.range(f"compute layer {layer}", begin - 6 * US, begin - 3 * US)
        builder.range(f"forward {number}", at - 10, at + 1_300 * US)
    found = findings(builder, tmp_path)["pageable_source"]
    assert any(text.startswith("without it a forward would take at most ") for text in found.evidence)


def test_geometric_costs_are_those_of_one_device(tmp_path: Path) -> None:
    """What another GPU computes hides no copy of this one, and two GPUs cannot lose more than the time that passed."""
    builder = TraceBuilder()
    for step in range(4):
        at = step * 1_000 * US
        for device in (0, 1):
            later = at + device * 500 * US
            builder.copy(
                later, later + 400 * US, "h2d", 16 * MIB, stream=COMPUTE, device=device, call=(later, later + 10)
            )
            builder.kernel(
                later + 400 * US, later + 500 * US, stream=COMPUTE, device=device, call=(later + 20, later + 30)
            )
    found = findings(builder, tmp_path)["same_stream"]
    assert found.cost_ns == 4 * 400 * US
    assert found.evidence[0].startswith("GPU 0 of process ")
    assert "4 copies" in found.evidence[0]


def test_blocking_copies_without_a_forward_are_named_by_their_call(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for step in range(4):
        at = step * 1_000 * US
        builder.copy(
            at, at + 500 * US, "d2h", 16 * MIB, stream=COMPUTE, api="cudaMemcpy_v3020", call=(at, at + 500 * US)
        )
        builder.kernel(at + 500 * US, at + 600 * US, stream=COMPUTE, call=(at + 510 * US, at + 511 * US))
    found = findings(builder, tmp_path)["implicit_sync"]
    assert " by cudaMemcpy (4) on " in found.evidence[0]


def test_pieces_are_told_with_what_they_cost_and_what_one_copy_would(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.copy(0, 1_000 * US, "h2d", 50_000_000, stream=LOAD, call=(0, 10))
    for number in (-1, 0):
        at = (number + 2) * 100_000 * US
        for piece in range(20):
            begin = at + piece * 10 * US
            builder.copy(begin + 9 * US, begin + 10 * US, "h2d", 10_000, stream=LOAD, call=(begin, begin + 4 * US))
        builder.range("load layer 0", at - 10, at + 200 * US)
        builder.kernel(at + 201 * US, at + 300 * US, stream=COMPUTE, call=(at + 200 * US + 50, at + 200 * US + 90))
        builder.range("compute layer 0", at + 200 * US + 40, at + 201 * US)
        builder.range(f"forward {number}", at - 20, at + 301 * US)
    found = findings(builder, tmp_path)["fragmented_copies"]
    assert found.evidence[:3] == (
        "20 pieces of 9.77 KiB (median) in forward 0 (index 1), each call takes the host 4 µs",
        "loads run at 10 GB/s, large pinned copies get 50 GB/s",
        "as one piece a layer they are busy for 4 µs, not 20 µs, at the rate of large pinned copies",
    )
