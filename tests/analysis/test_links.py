"""Ceilings of links: what PCIe carries, and where the number for a device is from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.links import LinkOptions, link_ceilings, nvlink_rate, pcie_rate

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Trace

MIB = 1 << 20


@pytest.mark.parametrize(
    ("generation", "width", "rate"),
    [(1, 16, 4.0), (2, 16, 8.0), (3, 16, 15.754), (4, 16, 31.508), (5, 16, 63.015), (5, 8, 31.508), (6, 16, 121.0)],
)
def test_pcie_rates_after_encoding(generation: int, width: int, rate: float) -> None:
    assert pcie_rate(generation, width) == pytest.approx(rate, abs=0.001)


def test_an_unknown_link_has_no_rate() -> None:
    assert pcie_rate(7, 16) is None
    assert pcie_rate(5, 0) is None
    assert nvlink_rate("NVIDIA GeForce RTX 4090", 4) is None
    assert nvlink_rate(None, 4) is None


def test_nvlink_rates_add_up() -> None:
    assert nvlink_rate("NVIDIA H200", 18) == 450.0
    assert nvlink_rate("NVIDIA B200", 18) == 900.0


def with_facts(folder: Path, facts: dict[str, Any] | None) -> Trace:
    """Return a trace with one pinned copy of 64 MiB at 50 GB/s and one of 1 MiB at twice that."""
    builder = TraceBuilder().copy(0, 64 * MIB // 50, n_bytes=64 * MIB)
    builder.copy(9_000_000, 9_000_000 + MIB // 100, n_bytes=MIB)
    trace = read_back(builder, folder)
    return replace(trace, capture=replace(trace.capture, facts=facts))


def device(**facts: Any) -> dict[str, Any]:
    return {"devices": [{"id": 0, **facts}]}


GENERATION_5 = {"pcie_generation": 5, "pcie_width": 16, "pcie_generation_max": 5, "pcie_width_max": 16}


@pytest.mark.parametrize(
    ("facts", "options", "rate", "origin"),
    [
        (device(**GENERATION_5), LinkOptions(), 63.015, "facts"),
        (device(**GENERATION_5), LinkOptions(gbps=20.0), 63.015, "facts"),
        (device(**GENERATION_5 | {"pcie_generation": 1}, pcie_read="while idle"), LinkOptions(), 63.015, "facts"),
        (device(**GENERATION_5 | {"pcie_width": 8}, pcie_read="under load"), LinkOptions(), 31.508, "facts"),
        (None, LinkOptions(gbps=20.0), 20.0, "option"),
        (None, LinkOptions(pcie=(4, 16)), 31.508, "option"),
        (None, LinkOptions(), 50.0, "observed"),
        (device(), LinkOptions(), 50.0, "observed"),
        (device(pcie_generation="5", pcie_width=None), LinkOptions(), 50.0, "observed"),
        ({"devices": "none"}, LinkOptions(), 50.0, "observed"),
    ],
)
def test_facts_come_before_options_and_options_before_what_was_seen(
    facts: dict[str, Any] | None, options: LinkOptions, rate: float, origin: str, tmp_path: Path
) -> None:
    [found] = link_ceilings(with_facts(tmp_path, facts), options)
    assert (found.device, found.origin) == (0, origin)
    assert found.rate == pytest.approx(rate, abs=0.01)


def test_without_a_large_pinned_copy_nothing_is_known(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 100, n_bytes=MIB).copy(200, 300, n_bytes=64 * MIB, memory="pageable")
    assert link_ceilings(read_back(builder, tmp_path)) == ()


def test_a_batch_of_small_pieces_is_no_large_copy(tmp_path: Path) -> None:
    builder = TraceBuilder().copy(0, 100, n_bytes=64 * MIB, copyCount=256)
    assert link_ceilings(read_back(builder, tmp_path)) == ()
