"""Lanes and call stacks of the corpus, if there is one: rates and names that its README and a look at the rows give."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from test_corpus import FILES, capture, query, report

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not FILES, reason="TRACEVIEW_CORPUS names no folder with captures")

HINDERED = {"inbound_contention", "outbound_contention", "duplex_slowdown", "slowed_elsewhere", "low_rate"}


def lane(made: dict[str, Any], name: str, beside: str | None, device: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = next(
        row for row in made["lanes"] if (row["class"], row["with"], row["device"]) == (name, beside, device)
    )
    return found


def test_nvlink_slows_no_load_and_the_other_direction_does(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture("p2p"), capsys)
    peers = lane(made, "h2d", "p2p in")
    assert (peers["shared_lane"], peers["verdict"]) == (False, "no_conflict")
    assert 55.1 <= peers["rate_together"] <= 55.4
    back = lane(made, "h2d", "d2h")
    assert (back["shared_lane"], back["verdict"]) == (False, "duplex_slowdown")
    assert 49.5 <= back["rate_together"] <= 52.0
    assert lane(made, "p2p in", "h2d")["rate_together"] == pytest.approx(396, abs=1)
    assert lane(made, "p2p in", None)["path_from"] == "rate"
    assert not {row["verdict"] for row in made["lanes"]} & (HINDERED - {"duplex_slowdown"})


@pytest.mark.parametrize("name", ["ideal", "graph", "item", "item_callstacks", "fragmented", "pageable", "offload"])
def test_loads_alone_on_their_link_hinder_nobody(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture(name), capsys)
    assert not {row["verdict"] for row in made["lanes"]} & HINDERED


def test_evictions_slow_the_prefetch_of_an_offloaded_cache(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture("hf_offloaded_cache_stacks"), capsys)
    assert lane(made, "h2d", "d2h")["verdict"] == lane(made, "d2h", "h2d")["verdict"] == "duplex_slowdown"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_lane_has_all_bytes_of_its_copies(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(path, capsys)
    copied = Counter[tuple[int, str]]()
    for group in made["copies"]:
        if group["direction"] in ("h2d", "d2h"):
            copied[group["device"], group["direction"]] += group["bytes"]
    lanes = Counter[tuple[int, str]]()
    for row in made["lanes"]:
        if row["with"] is None and row["class"].split()[0] in ("h2d", "d2h") and row["mover"] != "SMs":
            lanes[row["device"], row["class"].split()[0]] += row["bytes"]
    assert lanes == copied
    for row in made["lanes"]:
        assert row["busy_ns"] >= row.get("together_ns", 0)
        assert (row["slowdown"] is not None) if row["verdict"] in HINDERED - {"low_rate"} else True


def test_the_synchronising_calls_of_transformers_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    path = capture("hf_offloaded_cache_stacks")
    made = report(path, capsys)
    named = [sync for sync in made["syncs"] if sync["where"]]
    assert Counter(sync["where"][0] for sync in named for _ in range(sync["count"])).keys() == {
        ".cuda()",
        "tensor()",
        "bool()",
        ".item()",
        "torch.cuda.synchronize()",
    }
    [(blocking,)] = query(
        path,
        """SELECT COUNT(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r JOIN StringIds AS s ON s.id = r.nameId
           WHERE r.eventClass = 67 AND s.value LIKE 'cuda%Synchronize'""",
    )
    assert sum(sync["count"] for sync in named) == blocking
    assert all("<module> (/app/offloaded_cache.py:" in sync["where"][-1] for sync in named)


def test_an_item_is_named_and_its_python_said_to_be_missing(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture("item_callstacks"), capsys)
    accidental = [sync for sync in made["syncs"] if sync["accidental"] and sync["kind"] == "scalar_readback"]
    assert {sync["where"][0] for sync in accidental} == {".item()"}
    assert "lines of Python that block" in [entry["measure"] for entry in made["abstained"]]
