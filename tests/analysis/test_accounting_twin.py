"""The accounting of random small scenes against its brute-force twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import brute_force
import pytest
from brute_force_syncs import sync_costs
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from trace_builder import TraceBuilder

import traceview
from traceview.analysis.accounting import account
from traceview.analysis.forwards import UNTOLD_SHARE, ForwardOptions, find_forwards
from traceview.analysis.measures import KernelBaseline, measure
from traceview.analysis.syncs import find_blocking_calls

if TYPE_CHECKING:
    from pathlib import Path

    from hypothesis.strategies import DrawFn

    from traceview.model import Trace

    Row = dict[str, Any]

NEED_LAYERS = ("first_layer_exposed", "exposed_load", "exposed_load_later", "ideal", "serial")
MEASURES = (*NEED_LAYERS, "makespan", "overlap", "load_busy", "compute_busy")
MAIN, LOADER = 4711, 4712
STREAMS = (7, 13, 17)
BYTES = (64, 1 << 20, (1 << 20) + 1)
QUIET_CALLS = ("cudaEventQuery_v3020", "cudaMallocAsync_v11020", "cudaStreamWaitEvent_v3020", "cuModuleLoadData")
BLOCKING_CALLS = (
    "cudaDeviceSynchronize_v3020",
    "cudaStreamSynchronize_v3020",
    "cudaEventSynchronize_v3020_ptsz",
    "cudaMalloc_v3020",
    "cudaFree_v3020",
    "cudaHostRegister_v4000",
)
COPY_CALLS = ("cudaMemcpyAsync_v3020", "cudaMemcpyAsync_v3020", "cudaMemcpy_v3020")


class SceneMaker:
    """Draws a scene call by call, along the clock of each host thread."""

    def __init__(self, draw: DrawFn, orderly: bool) -> None:
        self.draw = draw
        self.orderly = orderly
        self.latest = -1
        self.operations: list[Row] = []
        self.calls: list[Row] = []
        self.ranges: list[Row] = []
        self.now = dict.fromkeys((MAIN, LOADER), 0)
        self.directions = ("h2d", "h2d", "h2d", "d2h", "d2d")

    def __repr__(self) -> str:
        words = {"operations": self.operations, "calls": self.calls, "ranges": self.ranges}
        return "\n".join(f"{word}[{i}] {row}" for word, rows in words.items() for i, row in enumerate(rows))

    def pick(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def choose(self, options: tuple[Any, ...]) -> Any:
        return self.draw(st.sampled_from(options))

    def call(self, thread: int, name: str) -> int:
        start = self.now[thread] + self.pick(0, 3)
        self.now[thread] = start + self.pick(1, 4)
        self.calls.append({"start": start, "end": self.now[thread], "thread": thread, "name": name})
        return len(self.calls) - 1

    def operation(self, kind: str, launch: int | None, stream: int) -> None:
        submitted = self.pick(0, 60) if launch is None else self.calls[launch]["start"]
        start = max(submitted + self.choose((0, 1, 2, 3, 5, 8, 13, 21)), 0)
        if self.orderly:
            start = self.latest = max(start, self.latest + 1)
        row = {"start": start, "end": start + self.pick(1, 12), "kind": kind, "stream": stream, "launch": launch}
        row |= {"direction": None, "memory": None, "bytes": 0}
        if kind == "copy":
            row["direction"] = self.choose(self.directions)
            row["bytes"] = self.choose(BYTES)
            row["memory"] = "device" if row["direction"] == "d2d" else self.choose(("pinned", "pinned", "pageable"))
        self.operations.append(row)

    def submit(self, thread: int, usual: str) -> None:
        """Make one call: mostly the usual submission, now and then one that does not belong here."""
        what = self.choose((usual, usual, "kernel", "copy", "memset", "blocking", "quiet"))
        if what == "blocking":
            self.call(thread, self.choose(BLOCKING_CALLS))
        elif what == "quiet":
            self.call(thread, self.choose(QUIET_CALLS))
        else:
            name = {"kernel": "cudaLaunchKernel_v7000", "memset": "cudaMemsetAsync_v3020"}.get(what)
            launch = self.call(thread, name or self.choose(COPY_CALLS))
            stream = {"kernel": 7, "copy": 13}.get(usual, 7)
            self.operation(what, launch, self.choose((stream, stream, stream, *STREAMS)))

    def layer(self, thread: int, word: str, layer: int, calls: int) -> None:
        opened = self.now[thread] = self.now[thread] + self.pick(0, 2)
        if word == "compute" and layer == 0:
            # the definitions do not say what carries compute where the compute ranges launch only copies
            self.operation("kernel", self.call(thread, "cudaLaunchKernel_v7000"), 7)
        for _ in range(calls):
            self.submit(thread, "copy" if word == "load" else "kernel")
        self.now[thread] += self.pick(0, 2)
        self.ranges.append(
            {"start": opened, "end": self.now[thread], "thread": thread, "name": f"{word} layer {layer}"}
        )

    def forward(self, number: int, layers: int) -> None:
        if not layers:
            # nor whether a stream that runs device-to-device copies and no kernel carries compute
            self.directions = ("h2d", "h2d", "d2h")
        opened = self.now[MAIN] = max(self.now.values()) + 1
        self.now[LOADER] = opened + self.pick(0, 3)
        for layer in range(layers):
            self.layer(MAIN if self.orderly else self.choose((MAIN, MAIN, LOADER)), "load", layer, self.pick(0, 3))
            if self.choose((False, False, True)):
                self.submit(MAIN if self.orderly else self.choose((MAIN, LOADER)), "kernel")
            self.layer(MAIN, "compute", layer, self.pick(0, 3))
        for _ in range(self.pick(1, 3 if layers else 8)):
            self.submit(MAIN, self.choose(("kernel", "copy")))
        self.operation("kernel", self.call(MAIN, "cudaLaunchKernel_v7000"), 7)
        self.now[MAIN] = max(self.now.values()) + self.pick(1, 4)
        self.ranges.append({"start": opened, "end": self.now[MAIN], "thread": MAIN, "name": f"forward {number}"})


@st.composite
def scenes(
    draw: DrawFn, forwards: int = 1, unlaunched: int = 0, layers: tuple[int, int] = (2, 3), orderly: bool = False
) -> SceneMaker:
    """Draw a scene of some forwards, each on the main thread with loads that a second thread may submit.

    In an ``orderly`` one a single thread submits everything and the device starts it in that order.
    """
    scene = SceneMaker(draw, orderly)
    for number in range(forwards):
        scene.forward(number, scene.pick(*layers))
    for _ in range(scene.pick(0, unlaunched)):
        scene.operation(scene.choose(("kernel", "copy", "memset")), None, scene.choose(STREAMS))
    return scene


def written(scene: SceneMaker, path: Path) -> Trace:
    """Return the trace of a scene, written to a file and read back."""
    builder = TraceBuilder()
    for index, call in enumerate(scene.calls):
        builder.api(call["name"], call["start"], call["end"], thread=call["thread"], correlation=index + 1)
    for op in scene.operations:
        where = {"stream": op["stream"], "correlation": None if op["launch"] is None else op["launch"] + 1}
        if op["kind"] == "copy":
            memory = "pinned" if op["memory"] == "device" else op["memory"]
            builder.copy(op["start"], op["end"], op["direction"], op["bytes"], memory=memory, **where)
        elif op["kind"] == "memset":
            builder.memset(op["start"], op["end"], **where)
        else:
            builder.kernel(op["start"], op["end"], **where)
    for row in scene.ranges:
        builder.range(row["name"], row["start"], row["end"], thread=row["thread"])
    return traceview.read(builder.write(path))


def untold(operations: list[Row], twin: Row) -> float:
    """Return the share of a forward's time in which a kernel without a launch runs: nobody knows whose it is."""
    kernels = [op for op in operations if op["kind"] in ("kernel", "graph") and op["launch"] is None]
    return len(brute_force.busy(kernels) & set(range(twin["t0"], twin["t1"]))) / max(twin["makespan"], 1)


def check(scene: SceneMaker, path: Path) -> None:
    """Assert that every forward of a scene is accounted and measured as its twin does it."""
    trace = written(scene, path)
    forwards = find_forwards(trace, ForwardOptions())
    baseline = KernelBaseline(trace, forwards)
    by_name = {found.name: found for found in forwards}
    for row in scene.ranges:
        if not row["name"].startswith("forward"):
            continue
        twin = brute_force.account(scene.operations, scene.calls, scene.ranges, row)
        assert twin is not None
        if row["name"] not in by_name:
            assert untold(scene.operations, twin) > UNTOLD_SHARE
            continue
        found = account(trace, by_name[row["name"]])
        assert (found.t0_ns, found.t1_ns) == (twin["t0"], twin["t1"])
        assert dict(found.categories) == twin["categories"]
        assert sum(found.categories.values()) == twin["makespan"]
        measures = measure(trace, by_name[row["name"]], found, baseline).measures
        for name in MEASURES:
            judged = twin["layered"] or name not in NEED_LAYERS
            if name == "ideal":
                # layers that overtake each other have no ideal in fixed order
                judged = judged and twin["ideal"] <= twin["makespan"]
            assert getattr(measures, f"{name}_ns") == (twin[name] if judged else None), name
        for category, spent in twin["categories"].items():
            if spent:
                event(category)


anything_goes = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("twin") / "scene.sqlite"


@anything_goes
@given(scene=scenes())
def test_one_forward_is_accounted_as_the_twin_accounts_it(scene: SceneMaker, path: Path) -> None:
    check(scene, path)


@anything_goes
@given(scene=scenes(forwards=2))
def test_neighbouring_forwards_are_accounted_as_the_twin_accounts_them(scene: SceneMaker, path: Path) -> None:
    check(scene, path)


@anything_goes
@given(scene=scenes(unlaunched=3))
def test_work_without_a_launch_is_accounted_as_the_twin_accounts_it(scene: SceneMaker, path: Path) -> None:
    check(scene, path)


@anything_goes
@given(scene=scenes(forwards=2, orderly=True))
def test_blocking_calls_cost_what_the_twin_says(scene: SceneMaker, path: Path) -> None:
    """Of work that overtakes other work nobody can say which call held it up, so here it does not."""
    trace = written(scene, path)
    forwards = find_forwards(trace, ForwardOptions())
    found = find_blocking_calls(trace, forwards, [account(trace, one) for one in forwards])
    assume(not found.readback.any())  # two calls in one
    costs = dict(zip(zip(found.forward.tolist(), found.start.tolist(), strict=True), found.cost.tolist(), strict=True))
    for number, row in enumerate([row for row in scene.ranges if row["name"].startswith("forward")]):
        twin = brute_force.account(scene.operations, scene.calls, scene.ranges, row)
        assert twin is not None
        for index, cost in sync_costs(twin, scene.operations, scene.calls, row).items():
            assert costs[number, scene.calls[index]["start"]] == cost, scene.calls[index]
            event("costly" if cost else "free")


@anything_goes
@given(scene=scenes(layers=(0, 0)))
def test_a_forward_without_layers_is_accounted_as_the_twin_accounts_it(scene: SceneMaker, path: Path) -> None:
    check(scene, path)
