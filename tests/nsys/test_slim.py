"""What a slimmed export holds: nothing of people and machines, no unused string, and the shape of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from export_writer import change
from slim_scenes import SECRETS, keeping, report, rows, scene, status, with_secrets

import traceview
from traceview.nsys import schema, slim_tables
from traceview.nsys.schema import Source
from traceview.nsys.slim_rows import STACKS_TABLE
from traceview.nsys.slim_texts import Scrubber
from traceview.slimming import slim

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("selection", [(), ("--forwards", "1:3"), ("--window", "90:220")], ids=" ".join)
def test_nothing_of_user_and_machine_is_left(
    selection: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = with_secrets(scene(), tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    before = path.read_bytes()
    for secret in SECRETS:
        assert secret.encode() in before, "the scene must hold what is to be taken out"
    assert status("slim", str(path), str(output), "--verify", *selection) == 0
    after = output.read_bytes()
    assert [secret for secret in SECRETS if secret.encode() in after] == []
    assert path.read_bytes() == before
    made = report(output, capsys) if capsys.readouterr() else {}
    assert made["trace"]["devices"] == [{"id": 0, "name": "NVIDIA H200"}]
    assert made["trace"]["facts"] == {"devices": [{"id": 0, "gpu_name": "NVIDIA H200"}], "file": "kv.bin"}
    where = [sync["where"] for sync in made["syncs"] if sync["where"]]
    assert where
    assert all("prefill (torch/tensor.py:7)" in frames and "prefill (serve.py:7)" in frames for frames in where)


def test_the_result_is_compact_and_keeps_the_shape_of_an_export(tmp_path: Path) -> None:
    path, output = with_secrets(scene(), tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    slim(path, output, keeping(2, 3))
    assert rows(output, "PRAGMA freelist_count") == [(0,)]
    assert rows(output, "PRAGMA page_size") == [(1024,)]
    assert rows(output, "PRAGMA integrity_check") == [("ok",)]
    tables = {name for (name,) in rows(output, "SELECT name FROM sqlite_master")}
    assert tables.isdisjoint({"ThreadNames", "PROCESSES", "TARGET_INFO_SYSTEM_ENV"})
    for table in tables - {"StringIds", "META_DATA_CAPTURE", "META_DATA_EXPORT"}:
        columns = [[name for _, name, *_ in rows(one, f"PRAGMA table_info({table})")] for one in (path, output)]
        assert columns[0] == columns[1]
    used = "SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL"
    used += " UNION SELECT nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME UNION SELECT symbol FROM CUDA_CALLCHAINS"
    used += " UNION SELECT module FROM CUDA_CALLCHAINS UNION SELECT 0"
    wanted = {text for (text,) in rows(path, f"SELECT value FROM StringIds WHERE id IN ({used})")}
    stored = {text for (text,) in rows(output, "SELECT value FROM StringIds")}
    assert {"cudaMemcpyAsync_v3020", "libtorch.so", "serve.py", "torch/tensor.py", "prefill"} <= stored
    assert len(stored) <= len(wanted) + 3
    assert rows(output, "SELECT value FROM META_DATA_CAPTURE WHERE name LIKE '%MODE'") == [("Node",)]
    assert traceview.read(output).capture.graph_mode == "node"
    [said] = traceview.read(output).capture.diagnostics
    assert said == "Not all CUDA events might have been collected by python3 of [user]"


def test_texts_that_are_no_texts_do_not_get_through(tmp_path: Path) -> None:
    path = change(
        scene().write(tmp_path / "run.sqlite"),
        "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridId = 'alice'",
        "UPDATE NVTX_EVENTS SET category = x'616c696365', binaryData = 'alice'",
        "UPDATE NVTX_EVENTS SET jsonText = '\"alice\"' WHERE eventType = 59",
    )
    slim(path, tmp_path / "small.sqlite", keeping())
    assert b"alice" in path.read_bytes()
    assert b"alice" not in (tmp_path / "small.sqlite").read_bytes()


def test_every_table_that_the_reader_knows_has_its_place() -> None:
    known = {table for one in vars(schema).values() if isinstance(one, Source) for table in one.tables}
    known |= {value for name, value in vars(schema).items() if name.endswith("_TABLE")}
    by_row = {"KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "RUNTIME", "CUDA_EVENT", "SYNCHRONIZATION"}
    placed = {f"CUPTI_ACTIVITY_KIND_{name}" for name in by_row}
    placed |= {schema.NVTX_TABLE, schema.STRINGS_TABLE, STACKS_TABLE}
    placed |= {*slim_tables.WHOLE_TABLES, *slim_tables.METRIC_TIMES, *slim_tables.METRIC_NAMES}
    assert known <= placed


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("load layer 3", "load layer 3"),
        ("/home/alice/model.py:12", "model.py:12"),
        (r"C:\\Users\\alice\\run.py", "run.py"),
        ("see /tmp/a/b.log and ~/c/d", "see b.log and d"),
        ("void at::native::<unnamed>::f<(int)4>(T1, T2)", "void at::native::<unnamed>::f<(int)4>(T1, T2)"),
        ("reads/s and a/b", "reads/s and a/b"),
        ("prefill of alice on worker-7", "prefill of [user] on [host]"),
        ("alice_run, malice", "[user]_run, malice"),
        ("GPU-3b17ac14-b718-b9f6-9af4-d0b470a7d263", "[id]"),
        ('facts {"uuid":"x","a":["/a/b/c",1]}', 'facts {"a":["c",1]}'),
        ("facts {broken /home/alice", "facts "),
    ],
)
def test_texts_lose_folders_names_and_identities(text: str, left: str) -> None:
    scrubber = Scrubber(hosts=["worker-7", "vm"], users=["alice", "root"])
    assert scrubber.text(text) == left
    assert scrubber.text(left) == left
