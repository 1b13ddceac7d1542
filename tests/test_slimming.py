"""A slimmed trace says the same of its forwards, nothing of people and machines, and appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from export_writer import change
from layouts import LAYOUTS
from trace_builder import TraceBuilder, layered_forward

import traceview
from traceview.analysis.forwards import ForwardOptions, find_forwards
from traceview.analysis.report import ReportOptions
from traceview.cli import run
from traceview.errors import OutputError, SelectionError
from traceview.nsys import schema, slim_tables
from traceview.nsys.schema import Source
from traceview.nsys.slim_rows import STACKS_TABLE
from traceview.slimming import SlimOptions, slim

MS = 1_000_000
SECRETS = (
    "worker-7.cluster.example",
    "alice",
    "sk-live-4242424242",
    "/home/alice/secret-project",
    "secret-project",
    "/opt/private",
    "--license-key",
    "GPU-3b17ac14-b718-b9f6-9af4-d0b470a7d263",
    "3b17ac14-b718-b9f6-9af4-d0b470a7d263",
    "0000:1b:00.0",
    "Python Worker of alice",
    "quadd_session",
)
"""What the scene's capture tells of its user and machine; none of it may be left."""

ENVIRONMENT = "HOSTNAME=worker-7.cluster.example\0USER=alice\0API_KEY=sk-live-4242424242\0HOME=/home/alice"


def scene(layout: str = "3.20.3", forwards: range = range(-1, 4), layers: int = 3) -> TraceBuilder:
    """Return forwards of a few layers with ``.item()`` in each, whose calls have C++ and Python stacks."""
    builder = TraceBuilder(layout).gpu(0, "NVIDIA H200", gpu=3)
    for number in forwards:
        start = (number + 2) * 100 * MS
        loads = [[(start + (2 + 3 * layer) * MS, start + (5 + 3 * layer) * MS)] for layer in range(layers)]
        computes = [[(end + 10_000, end + 2 * MS + number * 1000)] for [(_, end)] in loads]
        layered_forward(builder, start=start, loads=loads, computes=computes, number=number)
        builder.copy(start + 20 * MS, start + 20 * MS + 900, "d2h", 4, stream=7, call=(start + 300, start + 350))
        builder.stream_sync(stream=7, call=(start + 400, start + 19 * MS), correlation=9000 + number)
        builder.range("data of /home/alice/secret-project/set.bin", start + 50, start + 60)
    return builder


def with_secrets(builder: TraceBuilder, path: Path) -> Path:
    """Write the scene with everything that a capture says about its user and machine, and stacks of the syncs."""
    stacks = [("at::native::item", "/home/alice/secret-project/lib/libtorch.so"), ("main", "/opt/private/bin/python3")]
    source = builder.string("/home/alice/secret-project/serve.py")
    package = builder.string("/home/alice/venv/lib/python3.12/site-packages/torch/tensor.py")
    function = builder.string("prefill")
    frames = [{"Function": function, "File": file, "Line": 7} for file in (package, source)]
    payload = json.dumps({"Python Backtrace on CUDA": {"Thread state": "Running", "Frames": frames}})
    for number in range(-1, 4):
        start = (number + 2) * 100 * MS
        builder.stack(number + 100, stacks)
        call = {"correlation": 9000 + number, "eventClass": 67, "callchainId": number + 100}
        builder.api("cudaStreamSynchronize", start + 390, start + 19 * MS + 10, **call)
        builder.mark("", start + 390, domain="Python Backtrace on CUDA", jsonText=payload)
    facts = {"devices": [{"id": 0, "uuid": SECRETS[7], "gpu_name": "NVIDIA H200"}], "file": "/opt/private/kv.bin"}
    builder.mark(f"facts {json.dumps(facts)}", 5, domain="traceview")
    builder.string(ENVIRONMENT)
    builder.string("python3 serve.py --license-key 1234")
    builder.capture("PROCESS_0:ENVIRONMENT_VARIABLE", 'API_KEY="sk-live-4242424242"')
    builder.capture("PROCESS_0:COMMAND", "/opt/private/bin/python3").capture("DEVICE_DISPLAY_NAME", SECRETS[0])
    builder.capture("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")
    builder.diagnostic("Process was launched, see /tmp/nvidia/quadd_session_1/streams/pid_1.log")
    builder.diagnostic("Not all CUDA events might have been collected by /opt/private/bin/python3 of alice")
    builder.write(path)
    uuid = SECRETS[8]
    return change(
        path,
        "CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)",
        "INSERT INTO StringIds VALUES (7001, 'Python Worker of alice')",
        "INSERT INTO ThreadNames VALUES (7001, 1, 1)",
        "CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)",
        "INSERT INTO PROCESSES VALUES (1, 1, '/opt/private/bin/python3')",
        "CREATE TABLE TARGET_INFO_SYSTEM_ENV (globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER,"
        " value TEXT)",
        "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (1, 'Local', 'Hostname', 619, 'worker-7.cluster.example')",
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PARAM_INPUT_PATH', '/home/alice/secret-project/run.nsys-rep')",
        "INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_USER', 'alice')",
        "UPDATE TARGET_INFO_GPU SET busLocation = '0000:1b:00.0'",
        "ALTER TABLE TARGET_INFO_GPU ADD COLUMN uuid TEXT",
        f"UPDATE TARGET_INFO_GPU SET uuid = '{uuid}'",
        "ALTER TABLE TARGET_INFO_CUDA_DEVICE ADD COLUMN whence TEXT DEFAULT '/opt/private'",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN note BLOB DEFAULT 'alice'",
    )


def report(path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert status("report", str(path), "--format", "json", *options) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def status(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as stopped:
        run(list(arguments))
    return stopped.value.code


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def keeping(first: int | None = None, last: int | None = None, **options: Any) -> SlimOptions:
    selected = None if first is last is None else (first, last)
    return SlimOptions(ReportOptions(ForwardOptions(selected=selected)), **options)


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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_keeps_what_the_report_says_in_every_layout(layout: str, tmp_path: Path) -> None:
    path = scene(layout).write(tmp_path / "run.sqlite")
    for selected in ((None, None), (1, 3), (4, None)):
        made = slim(path, tmp_path / "small.sqlite", keeping(*selected, verify=True, force=True))
        assert made.compared > 100
        assert traceview.read(tmp_path / "small.sqlite").capture.schema_version == (
            None if layout == "none" else layout
        )


@pytest.mark.parametrize("selection", ["0:1", "1:3", "2:", ":-1", "4:5"])
def test_kept_forwards_keep_every_number(selection: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    assert status("slim", str(path), str(output), "--forwards", selection) == 0
    capsys.readouterr()
    wanted, found = report(path, capsys, "--forwards", selection), report(output, capsys)
    assert found["forwards"] == wanted["forwards"]
    assert found["summary"] == wanted["summary"]
    assert found["forwards"]
    assert [sync for sync in found["syncs"] if sync["forward"] is not None] == [
        sync for sync in wanted["syncs"] if sync["forward"] in {one["index"] for one in wanted["forwards"]}
    ]
    # a slimmed trace can be slimmed again, and is counted as the whole was
    index = found["forwards"][-1]["index"]
    again = tmp_path / "again.sqlite"
    assert status("slim", str(output), str(again), "--forwards", f"{index}:{index + 1}", "--verify") == 0
    capsys.readouterr()
    last = report(path, capsys, "--forwards", f"{index}:{index + 1}")["forwards"]
    assert report(again, capsys)["forwards"] == last


def test_the_first_kept_forward_does_not_become_warmup(tmp_path: Path) -> None:
    path = scene(forwards=range(4)).write(tmp_path / "run.sqlite")
    assert [one.warmup for one in find_forwards(traceview.read(path))] == [True, False, False, False]
    slim(path, tmp_path / "small.sqlite", keeping(2, 4))
    found = find_forwards(traceview.read(tmp_path / "small.sqlite"))
    assert [(one.name, one.index, one.warmup) for one in found] == [("forward 2", 2, False), ("forward 3", 3, False)]
    chosen = find_forwards(traceview.read(tmp_path / "small.sqlite"), ForwardOptions(warmup=1, selected=(3, 4)))
    assert [(one.name, one.warmup) for one in chosen] == [("forward 3", False)]


def test_a_number_that_depends_on_the_other_forwards_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    assert status("slim", str(path), str(output), "--forwards", "3:4") == 0
    assert "compute inflation of 1 of them" in capsys.readouterr().err
    whole, kept = report(path, capsys)["forwards"][3], report(output, capsys)["forwards"][0]
    assert {name for name in whole if whole[name] != kept[name]} == {"compute_inflation_ns"}
    assert status("slim", str(path), str(output), "--force", "--verify") == 0
    assert capsys.readouterr().err == ""


def test_loads_of_another_thread_and_the_record_they_wait_for_stay(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for number in range(3):
        start = (number + 1) * 100_000
        loader = {"thread": 99}
        builder.range(f"load layer {0}", start - 5_000, start - 4_000, **loader)
        builder.copy(start + 10, start + 5_000, call=(start - 4_900, start - 4_800), **loader)
        builder.record(number, stream=13, sync=number + 50, call=(start - 4_700, start - 4_600), **loader)
        builder.wait(number, stream=7, sync=number + 50, call=(start + 20, start + 30))
        builder.range("compute layer 0", start + 40, start + 90)
        builder.kernel(start + 5_010, start + 9_000, call=(start + 50, start + 60))
        builder.range(f"forward {number}", start, start + 10_000)
    path = builder.write(tmp_path / "run.sqlite")
    slim(path, tmp_path / "small.sqlite", keeping(1, 2, verify=True))
    [kept] = find_forwards(traceview.read(tmp_path / "small.sqlite"))
    assert (kept.name, kept.index, sorted(kept.role.tolist())) == ("forward 1", 1, [0, 1])


def test_forwards_that_run_beside_the_kept_ones_are_no_forwards_of_the_result(tmp_path: Path) -> None:
    builder = TraceBuilder()
    for process, shift in ((100, 0), (200, 4_000)):
        for number in range(3):
            start, one = number * 10_000 + shift, {"process": process}
            builder.range(f"forward {number}", start, start + 9_000, **one)
            builder.range("compute layer 0", start + 10, start + 90, **one)
            builder.kernel(start + 100, start + 8_000, call=(start + 20, start + 30), **one)
    path = builder.write(tmp_path / "ranks.sqlite")
    slim(path, tmp_path / "small.sqlite", keeping(2, 4, verify=True))
    found = find_forwards(traceview.read(tmp_path / "small.sqlite"))
    assert [(one.process, one.name, one.index) for one in found] == [(100, "forward 1", 2), (200, "forward 1", 3)]


def unannotated(path: Path) -> Path:
    """Write passes of two layers that only the sequence of their kernels tells apart."""
    builder = TraceBuilder()
    for number in range(6):
        at = number * 10_000
        builder.copy(at + 100, at + 5_000, call=(at + 1, at + 2))
        builder.record(number, stream=13, sync=number + 1, call=(at + 3, at + 4))
        builder.wait(number, stream=7, sync=number + 1, call=(at + 5, at + 6))
        builder.kernel(at + 5_010, at + 9_000, name="ab"[number % 2], call=(at + 7, at + 8))
    return builder.write(path)


def test_a_cut_that_would_change_the_forwards_is_refused(tmp_path: Path) -> None:
    path, output = unannotated(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    assert len(find_forwards(traceview.read(path))) == 3
    with pytest.raises(OutputError, match=r"forward 0 \(unnamed\) would change"):
        slim(path, output, keeping(0, 1))
    assert not output.exists()


def test_a_trace_without_forwards_is_cut_by_time(tmp_path: Path) -> None:
    path = TraceBuilder().kernel(5 * MS, 6 * MS, call=(1, 2)).kernel(90 * MS, 91 * MS, call=(3, 4)).write(
        tmp_path / "run.sqlite"
    )  # fmt: skip
    with pytest.raises(SelectionError, match="no forward"):
        slim(path, tmp_path / "small.sqlite", keeping(0, 1))
    slim(path, tmp_path / "small.sqlite", keeping(window_ms=(50.0, float("inf")), verify=True))
    assert traceview.read(tmp_path / "small.sqlite").operations.start.tolist() == [90 * MS]
    assert traceview.read(tmp_path / "small.sqlite").calls.start.tolist() == [3]


def test_metrics_stay_only_on_request_and_around_the_part(tmp_path: Path) -> None:
    builder = scene()
    for at in range(0, 600, 10):
        builder.row("GPU_METRICS", timestamp=at * MS, rawTimestamp=at * MS, typeId=1, metricId=2, value=at % 100)
    builder.row("TARGET_INFO_GPU_METRICS", typeId=1, typeName="GPU 0", metricId=2, metricName="PCIe RX Throughput")
    path, output = builder.write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    slim(path, output, keeping(1, 2))
    assert rows(output, "SELECT name FROM sqlite_master WHERE name LIKE '%METRIC%'") == []
    slim(path, output, keeping(1, 2, keep_metrics=True, force=True))
    times = [at for (at,) in rows(output, "SELECT timestamp FROM GPU_METRICS ORDER BY 1")]
    kept = traceview.read(output)
    assert times[0] <= kept.start_ns < times[1]
    assert times[-2] < kept.end_ns <= times[-1]
    assert rows(output, "SELECT metricName FROM TARGET_INFO_GPU_METRICS") == [("PCIe RX Throughput",)]


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


def test_the_output_is_never_the_input_and_never_overwritten_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"
    before = hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns
    os.link(path, tmp_path / "same.sqlite")
    for same in (path, tmp_path / "same.sqlite"):
        assert status("slim", str(path), str(same), "--force") == 2
        assert "is the input" in capsys.readouterr().err
    output.write_text("mine")
    assert status("slim", str(path), str(output)) == 1
    assert "--force" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert status("slim", str(path), str(output), "--force") == 0
    assert traceview.read(output).capture.kept is None
    assert (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) == before
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.sqlite", "same.sqlite", "small.sqlite"]


@pytest.mark.parametrize(
    ("content", "words"), [(b"", "is empty"), (b"no database", "not an SQLite file")], ids=["empty", "text"]
)
def test_an_unreadable_input_leaves_nothing(
    content: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(content)
    assert status("slim", str(path), str(tmp_path / "small.sqlite")) == 1
    assert words in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["run.sqlite"]


def test_verify_refuses_a_result_that_says_something_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, output = scene().write(tmp_path / "run.sqlite"), tmp_path / "small.sqlite"

    def tampered(*arguments: Any, **options: Any) -> Any:
        scrubber = write_slim(*arguments, **options)
        change(arguments[2], 'UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET "end" = "end" + 1')
        return scrubber

    from traceview.nsys.slim import write_slim

    monkeypatch.setattr("traceview.slimming.write_slim", tampered)
    slim(path, output, keeping(1, 3))
    output.unlink()
    with pytest.raises(OutputError, match=r"would not say the same in \d+ places: forwards\[0\]"):
        slim(path, output, keeping(1, 3, verify=True))
    assert not output.exists()


def test_a_table_with_a_version_in_its_name_is_kept_under_its_plain_name(tmp_path: Path) -> None:
    table = "CUPTI_ACTIVITY_KIND_MEMCPY"
    path = scene().renamed(table, f"{table}_V5").write(tmp_path / "run.sqlite")
    slim(path, tmp_path / "small.sqlite", keeping(1, 3, verify=True))
    assert rows(tmp_path / "small.sqlite", f"SELECT COUNT(*) > 0 FROM {table}") == [(1,)]


def test_every_table_that_the_reader_knows_has_its_place() -> None:
    known = {table for one in vars(schema).values() if isinstance(one, Source) for table in one.tables}
    known |= {value for name, value in vars(schema).items() if name.endswith("_TABLE")}
    by_row = {"KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "RUNTIME", "CUDA_EVENT", "SYNCHRONIZATION"}
    placed = {f"CUPTI_ACTIVITY_KIND_{name}" for name in by_row} | {schema.NVTX_TABLE, STACKS_TABLE}
    placed |= {*slim_tables.WHOLE_TABLES, *slim_tables.METRIC_TIMES, *slim_tables.METRIC_NAMES}
    assert known <= placed
