"""Captures to be slimmed: a small layered one, and the same with all that a capture tells of its user and machine."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from export_writer import change
from trace_builder import TraceBuilder, layered_forward

from traceview.analysis.forwards import ForwardOptions
from traceview.analysis.report import ReportOptions
from traceview.cli import run
from traceview.slimming import SlimOptions

if TYPE_CHECKING:
    from pathlib import Path

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
