"""Every capture of the corpus, if there is one: answered, exact, equal to plain SQL, and left untouched.

``TRACEVIEW_CORPUS`` names a folder of exports whose causes are known; the expected numbers are those of its README.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from traceview.cli import run

CORPUS = os.environ.get("TRACEVIEW_CORPUS")
FILES = sorted(Path(CORPUS).rglob("*.sqlite")) if CORPUS else []
MIGRATIONS = "(11, 12, 13)"

pytestmark = pytest.mark.skipif(not FILES, reason="TRACEVIEW_CORPUS names no folder with captures")


def report(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stopped:
        run(["report", str(path), "--format", "json", *options])
    assert stopped.value.code == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def forward_named(made: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(forward for forward in made["forwards"] if forward["name"] == name)
    return found


def capture(name: str) -> Path:
    return next((path for path in FILES if path.stem == name), Path(name))


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        return connection.execute(sql).fetchall()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_is_answered_exactly_and_left_untouched(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest(), sorted(path.parent.iterdir())
    made = report(path, capsys)
    for style in ("text", "markdown"):
        with pytest.raises(SystemExit) as stopped:
            run(["report", str(path), "--format", style])
        assert stopped.value.code == 0
        assert capsys.readouterr().out.strip()
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), sorted(path.parent.iterdir())) == before
    for forward in made["forwards"]:
        assert sum(forward["accounting"].values()) == forward["makespan_ns"] == forward["t1_ns"] - forward["t0_ns"]
        assert min(forward["accounting"].values()) >= 0


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_copies_equal_plain_sql(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {row[0] for row in query(path, "SELECT name FROM sqlite_master")}
    if "CUPTI_ACTIVITY_KIND_MEMCPY" not in tables:
        pytest.skip("the capture holds no copies")
    made = report(path, capsys)
    columns = {row[1] for row in query(path, "PRAGMA table_info(CUPTI_ACTIVITY_KIND_MEMCPY)")}
    pieces = "SUM(COALESCE(copyCount, 1))" if "copyCount" in columns else "COUNT(*)"
    [expected] = query(
        path,
        f"SELECT {pieces}, SUM(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind NOT IN {MIGRATIONS}",
    )
    assert (sum(c["pieces"] for c in made["copies"]), sum(c["bytes"] for c in made["copies"])) == (
        expected[0] or 0,
        expected[1] or 0,
    )
    [moved] = query(path, f"SELECT COUNT(*), SUM(bytes) FROM CUPTI_ACTIVITY_KIND_MEMCPY WHERE copyKind IN {MIGRATIONS}")
    assert (sum(m["count"] for m in made["migrations"]), sum(m["bytes"] for m in made["migrations"])) == (
        moved[0],
        moved[1] or 0,
    )
    for group in made["copies"]:
        assert sum(group["histogram"].values()) == group["pieces"]


def test_ideal_is_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    forward = forward_named(report(capture("ideal"), capsys), "forward 1")
    accounting = forward["accounting"]
    assert forward["makespan_ns"] == pytest.approx(11_798_000, rel=0.01)
    assert forward["first_layer_exposed_ns"] == pytest.approx(1_226_000, rel=0.01)
    assert forward["ideal_ns"] == pytest.approx(11_606_000, rel=0.01)
    assert accounting["load_copy"] == pytest.approx(1_217_000, rel=0.01)
    assert accounting["launch"] == pytest.approx(190_000, rel=0.01)
    losses = set(accounting) - {"compute", "load_copy", "launch"}
    assert {name: accounting[name] for name in losses} == dict.fromkeys(losses, 0)


def test_pageable_blocks_the_host(capsys: pytest.CaptureFixture[str]) -> None:
    forward = forward_named(report(capture("pageable"), capsys), "forward 1")
    assert forward["makespan_ns"] == pytest.approx(79_737_000, rel=0.01)
    assert forward["accounting"]["implicit_sync"] == pytest.approx(59_100_000, rel=0.01)


def test_fragmented_is_cut_into_pieces(capsys: pytest.CaptureFixture[str]) -> None:
    forward = forward_named(report(capture("fragmented"), capsys), "forward 1")
    assert forward["load_pieces"] == 8192
    assert forward["makespan_ns"] == pytest.approx(198_190_000, rel=0.01)


@pytest.mark.parametrize("name", ["item", "item_callstacks"])
def test_items_are_read_back_once_each(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture(name), capsys)
    index = forward_named(made, "forward 1")["index"]
    own = [sync for sync in made["syncs"] if sync["forward"] == index]
    counted = {
        (kind, accidental): sum(s["count"] for s in own if (s["kind"], s["accidental"]) == (kind, accidental))
        for kind in ("explicit", "implicit", "scalar_readback")
        for accidental in (True, False)
    }
    assert counted == {
        ("scalar_readback", True): 7,
        ("scalar_readback", False): 1,
        ("explicit", False): 1,
        ("explicit", True): 0,
        ("implicit", True): 0,
        ("implicit", False): 0,
    }
    assert all(sync["boundary"] for sync in own if not sync["accidental"])


def test_blocking_readbacks_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture("balinski-gomory_report19"), capsys)
    blocking = [sync for sync in made["syncs"] if sync.get("direction") == "d2h"]
    assert sum(sync["count"] for sync in blocking) == 3830
    assert {sync["kind"] for sync in blocking} == {"implicit"}
    assert max(blocking, key=lambda sync: sync["count"])["api"] == "cudaMemcpyFromSymbol"


def test_loads_on_the_compute_stream_do_not_overlap(capsys: pytest.CaptureFixture[str]) -> None:
    path = capture("nsys-ai_h100_2gpu_1s")
    made = report(path, capsys)
    loads = [group for group in made["copies"] if (group["direction"], group["memory"]) == ("h2d", "pinned")]
    assert [group["device"] for group in loads] == [0, 1]
    assert [group["bytes"] / 1e9 for group in loads] == pytest.approx([25.475, 25.475], abs=0.001)
    pairs = [row for row in made["overlap"] if {row["a"], row["b"]} == {"h2d", "compute"}]
    assert [(row["overlap_ns"], row["ratio"]) for row in pairs] == [(0, 0.0), (0, 0.0)]
    kernels = "CUPTI_ACTIVITY_KIND_KERNEL"
    [counted] = query(
        path,
        f"""SELECT COUNT(*), SUM(NOT EXISTS (SELECT 1 FROM CUPTI_ACTIVITY_KIND_RUNTIME AS r
            WHERE r.correlationId = k.correlationId AND r.globalTid >> 24 = k.globalPid >> 24)) FROM {kernels} AS k""",
    )
    assert counted == (3442, 1810)
    busy = {row["device"]: row["busy_b_ns"] if row["b"] == "compute" else row["busy_a_ns"] for row in pairs}
    for device, union in busy.items():
        covered, reach = 0, 0
        for start, end in query(path, f'SELECT start, "end" FROM {kernels} WHERE deviceId = {device} ORDER BY start'):
            covered += max(end - max(start, reach), 0)
            reach = max(reach, end)
        assert union == covered


def test_peer_copies_overlap_loads_on_both_devices(capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capture("p2p"), capsys)
    pairs = [row for row in made["overlap"] if {row["a"], row["b"]} == {"h2d", "p2p"} and row["device"] == 0]
    assert len(pairs) == 1
    assert pairs[0]["ratio"] > 0.95
