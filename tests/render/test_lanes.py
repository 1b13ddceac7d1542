"""Lanes, storage, inbound traffic and RDMA as text: silent on a healthy run, plain where something is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from report_samples import faulty, healthy, lane, storage

from traceview.render.markdown import render as markdown
from traceview.render.text import render as text
from traceview.report_links import Inbound, NicTraffic, Stage

if TYPE_CHECKING:
    from traceview.report import Report
    from traceview.report_links import Lane

MIB = 1 << 20
MS = 1_000_000


def shown(report: Report, title: str) -> str:
    """Return the lines of one section as text, empty without it."""
    blocks = text(report).split("\n\n")
    return next((block for block in blocks if block.startswith(title)), "")


def with_lanes(*lanes: Lane) -> Report:
    return replace(healthy(), lanes=lanes)


def alone(verdict: str = "full_rate") -> Lane:
    return lane(beside=None, rate_together=None, slowdown=None, together_ns=None, verdict=verdict)


def test_a_healthy_run_has_no_lanes_to_show() -> None:
    assert shown(with_lanes(alone(), alone("pageable"), alone("unknown")), "Lanes") == ""


def test_what_slowed_the_loads_is_told_with_both_rates_and_the_links() -> None:
    section = shown(with_lanes(alone(), lane()), "Lanes")
    assert "55.4 GB/s" in section
    assert "49.5 GB/s" in section
    assert "duplex slowdown" in section
    assert "h2d: DRAM[0] out · RC[0] down · GPU 0 in; at most 63 GB/s, by the captured facts" in section
    assert len(section.splitlines()) == 4


def test_company_without_consequence_is_told_too() -> None:
    assert "no conflict" in shown(with_lanes(lane(rate_together=55.2, slowdown=0.004, verdict="no_conflict")), "Lanes")


def test_company_for_a_moment_is_not() -> None:
    assert shown(with_lanes(lane(together_ns=9_000)), "Lanes") == ""


def test_a_slow_link_is_told_without_any_company() -> None:
    slow = replace(alone("low_rate"), rate_alone=20.1)
    assert "low rate" in shown(with_lanes(slow), "Lanes")


def test_a_best_copy_is_not_called_a_ceiling() -> None:
    section = shown(with_lanes(lane(ceiling=55.4, ceiling_from="observed")), "Lanes")
    assert "at most" not in section
    assert "best copy 55.4 GB/s, link unknown" in section


def test_storage_names_the_step_that_takes_longest() -> None:
    section = shown(replace(healthy(), storage=tuple(storage(index) for index in range(4))), "From storage")
    line = next(line for line in section.splitlines() if "takes longest" in line)
    assert line.split()[:2] == ["storage", "read"]
    assert "40 %" in line
    assert "straight" not in section


def test_storage_that_writes_into_the_pool_is_said_to() -> None:
    straight = replace(
        storage(1), straight=True, stages=(Stage("storage read", MS, MIB, 0, 0), Stage("h2d", 2 * MS, MIB, 0, 0))
    )
    assert "storage writes straight" in shown(replace(healthy(), storage=(straight,)), "From storage")


@pytest.mark.parametrize(
    ("unexplained", "words"), [(0, "explain all of it"), (3 * MIB, "explain all of it"), (90 * MIB, "15 %")]
)
def test_inbound_traffic_is_explained_or_not(unexplained: int, words: str) -> None:
    entry = Inbound(1, 41, 0, 600 * MIB, 500 * MIB, 10 * MIB, unexplained, 63.0, "facts")
    assert words in shown(replace(healthy(), inbound=(entry,)), "Inbound")


def test_idle_nics_are_not_shown() -> None:
    idle = NicTraffic("mlx5_0", 1, "receive", 900, 0, None, 0.001)
    busy = NicTraffic("mlx5_0", 1, "send", 900 * MIB, 20 * MS, 47.2, 48.0)
    assert shown(replace(healthy(), network=(idle,)), "RDMA") == ""
    assert "47.2 GB/s" in shown(replace(healthy(), network=(idle, busy)), "RDMA")


def test_all_of_it_fits_in_a_terminal_and_in_a_comment() -> None:
    page = text(faulty())
    assert max(len(line) for line in page.splitlines()) <= 100
    assert all(title in page for title in ("Lanes", "From storage", "Inbound PCIe traffic", "RDMA"))
    assert "duplex slowdown" in markdown(faulty())
