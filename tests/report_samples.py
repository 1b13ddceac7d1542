"""Reports made by hand, small enough to check by eye: what a renderer has to cope with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from traceview.report import (
    CATEGORIES,
    Abstention,
    CopyFit,
    CopyGroup,
    ExposedCopy,
    Finding,
    Forward,
    Layer,
    Measures,
    Migration,
    Overlap,
    Report,
    Summary,
    Sync,
    TraceInfo,
)
from traceview.report_links import Inbound, Lane, NicTraffic, Stage, Storage

MS = 1_000_000
MIB = 1 << 20
LOAD, COMPUTE = "41/0/13", "41/0/7"
HOSTILE = "\x1b[31m[red]<script>alert(1)</script>|`x`@octocat\u202e\r\n" + "n" * 10_000


def accounting(**spent_ns: int) -> dict[str, int]:
    """Return an accounting of all categories, 0 where nothing is said."""
    return {category: spent_ns.get(category, 0) for category in CATEGORIES}


def measures(account: dict[str, int], **values: Any) -> Measures:
    """Return measures of an eight-layer forward whose makespan is what its accounting sums to."""
    healthy: dict[str, Any] = {
        "makespan_ns": sum(account.values()),
        "lead_in_ns": 210_000,
        "first_layer_exposed_ns": 1_226_000,
        "exposed_load_ns": account["load_copy"] + account["load_gap"],
        "exposed_load_later_ns": 0,
        "ideal_ns": 11_606_000,
        "serial_ns": 20_100_000,
        "pipeline_efficiency": 11_606_000 / max(1, sum(account.values())),
        "hidden": 0.86,
        "load_busy_ns": 9_720_000,
        "compute_busy_ns": account["compute"],
        "compute_inflation_ns": 0,
        "overlap_ns": 8_359_200,
        "load_pieces": 8,
        "load_bytes": 512 * MIB,
        "accounting": account,
    }
    return Measures(**(healthy | values))


def forward(index: int, of: Measures, stalls_ns: tuple[int, ...] = (1_226_000, 0, 9_000, 0, 0, 0, 0, 0)) -> Forward:
    """Return a forward of eight layers; the first one is warm-up."""
    layers = tuple(Layer(number, 1_215_000, 1_300_000, 1, 64 * MIB, stall) for number, stall in enumerate(stalls_ns))
    start = 100 * MS * (index + 1)
    return Forward(
        name=f"forward {index}",
        index=index,
        process=41,
        device=0,
        warmup=index == 0,
        t0_ns=start,
        t1_ns=start + of.makespan_ns,
        layers_from="nvtx",
        measures=of,
        layers=layers,
    )


def overlap(
    scope: str | int, pair: tuple[str, str], busy_ns: tuple[int, int], both_ns: int, device: int = 0
) -> Overlap:
    """Return how two streams or classes run beside each other."""
    return Overlap(scope, 41, device, *pair, *busy_ns, both_ns, both_ns / min(busy_ns))


def copies(**values: Any) -> CopyGroup:
    """Return the loads of five forwards: pinned, in pieces of 64 MiB."""
    loads: dict[str, Any] = {
        "device": 0,
        "direction": "h2d",
        "memory": "pinned",
        "stream": LOAD,
        "pieces": 40,
        "n_bytes": 40 * 64 * MIB,
        "busy_ns": 48_600_000,
        "span_ns": 450_000_000,
        "rate_busy": 55.23,
        "rate_span": 5.96,
        "min_bytes": 64 * MIB,
        "median_bytes": 64 * MIB,
        "p95_bytes": 64 * MIB,
        "max_bytes": 64 * MIB,
        "gap_median_ns": 1_300,
        "host_median_ns": 4_100,
        "histogram": {str(64 * MIB): 40},
        "fit": CopyFit(identifiable=False, reason="all pieces have one size"),
    }
    return CopyGroup(**(loads | values))


def lane(**values: Any) -> Lane:
    """Return loads that writeback slows."""
    slowed: dict[str, Any] = {
        "transfer_class": "h2d",
        "direction": "in",
        "mover": "copy engine",
        "n_bytes": 40 * MIB,
        "rate_alone": 55.4,
        "rate_together": 49.5,
        "beside": "d2h",
        "shared_lane": False,
        "verdict": "duplex_slowdown",
        "process": 41,
        "memory": "pinned",
        "transfers": 40,
        "busy_ns": 48_600_000,
        "rate": 52.1,
        "together_ns": 9_000_000,
        "slowdown": 0.106,
        "links": ("DRAM[0] out", "RC[0] down", "GPU 0 in"),
        "path_from": "facts",
        "ceiling": 63.0,
        "ceiling_from": "facts",
    }
    return Lane(**(slowed | values))


def storage(index: int) -> Storage:
    """Return a forward whose reading from storage takes longest."""
    stages = (
        Stage("storage read", 30 * MS, 512 * MIB, 12 * MS, 8 * MS),
        Stage("stage", 9 * MS, None, 9 * MS, 3 * MS),
        Stage("h2d", 10 * MS, 512 * MIB, 10 * MS, 7 * MS),
        Stage("compute", 11 * MS, None, 11 * MS, 0),
    )
    return Storage(index, 41, 0, "storage read", False, stages)


TRACE = TraceInfo(
    path="captures/sample.sqlite",
    product_version="2025.3.2.474",
    schema_version="3.20.3",
    start_ns=12_345,
    duration_ns=612_000_000,
    devices=({"id": 0, "name": "NVIDIA H200"},),
    processes=(41,),
    captured=("kernels", "copies", "api_calls", "nvtx"),
    missing=("call_stacks", "gpu_metrics"),
    facts=None,
)
EMPTY = Report(
    trace=replace(
        TRACE, product_version=None, schema_version=None, devices=(), processes=(), captured=(), duration_ns=0
    ),
    forwards=(),
    summary=None,
    overlap=(),
    exposed_copy=(),
    copies=(),
    migrations=(),
    syncs=(),
)
BOUNDARY = Sync("cudaStreamSynchronize", "explicit", 1, 1, False, True, 9 * MS, 0, "forward 1", None)


def healthy() -> Report:
    """Return a run whose loads hide: nothing to find."""
    account = accounting(compute=10_390_000, load_copy=1_217_000, launch=191_000)
    forwards = tuple(
        forward(index, measures(account | {"launch": 191_000 + slower}))
        for index, slower in enumerate((900_000, 0, 20_000, 4_000))
    )
    return Report(
        trace=TRACE,
        forwards=forwards,
        summary=Summary(3, forwards[3].measures),
        overlap=(
            overlap("trace", ("h2d", "compute"), (48_600_000, 52_000_000), 41_796_000),
            overlap("trace", (LOAD, COMPUTE), (48_600_000, 52_000_000), 41_796_000),
            *(overlap(index, ("h2d", "compute"), (9_720_000, 10_390_000), 8_359_200) for index in range(4)),
        ),
        exposed_copy=(ExposedCopy("trace", 41, 0, "h2d", 6_804_000),),
        copies=(copies(),),
        migrations=(),
        syncs=(BOUNDARY,),
        abstained=(Abstention("where", "the capture has no call stacks", "nsys profile --cudabacktrace=all:0"),),
    )


def faulty() -> Report:
    """Return a run with about every fault there is, and names that try to be more than names."""
    account = accounting(
        compute=10_512_000, load_copy=9_000_000, load_gap=400_000, sync=300_000, implicit_sync=59_104_000, host=421_000
    )
    poor = measures(account, ideal_ns=63_710_000, pipeline_efficiency=0.799, hidden=0.0, load_busy_ns=62_000_000)
    forwards = tuple(replace(forward(index, poor), name=HOSTILE) for index in range(3))
    pageable = copies(
        memory="pageable",
        pieces=8_193,
        min_bytes=64 << 10,
        max_bytes=MIB,
        rate_busy=8.2,
        median_bytes=64 << 10,
        histogram={"65536": 8_192, str(MIB): 1},
        fit=CopyFit(identifiable=True, piece_cost_ns=2_140.0, rate=54.9),
    )
    accidental = Sync(
        "cudaMemcpyAsync",
        "implicit",
        1,
        8,
        True,
        False,
        59 * MS,
        59_104_000,
        HOSTILE,
        (HOSTILE, "main (run.py:3)"),
        "d2h",
    )
    return replace(
        healthy(),
        trace=replace(
            TRACE,
            path=HOSTILE,
            facts={"gpu": HOSTILE, "pcie": {"generation": 5, "width": 16}, "temperature": float("nan")},
            diagnostics=(HOSTILE,),
        ),
        forwards=forwards,
        summary=Summary(2, poor),
        copies=(pageable, *(copies(stream=f"41/0/{number}", n_bytes=number) for number in range(20, 32))),
        migrations=(Migration(0, "h2d", "page fault", 12, 3 * MIB, 700_000),),
        syncs=(
            BOUNDARY,
            *(replace(accidental, forward=index) for index in (0, 1, 2)),
            replace(accidental, forward=None, accidental=None, cost_ns=None, api="cudaMalloc", direction=None),
        ),
        lanes=(lane(), lane(beside=None, rate_together=None, slowdown=None, together_ns=None, verdict="full_rate")),
        storage=tuple(storage(index) for index in (0, 1, 2)),
        inbound=(Inbound(1, 41, 0, 600 * MIB, 512 * MIB, 51 * MIB, 37 * MIB, 63.0, "facts"),),
        network=(NicTraffic(HOSTILE, 1, "receive", 900 * MIB, 20 * MS, 47.2, 48.0),),
        findings=(
            Finding("pageable_source", "high", 59_104_000, 0.741, "accounting", HOSTILE, (HOSTILE, "b"), "Pin it."),
            Finding("host_bound", "low", 421_000, 0.005, "geometric", "The host is late.", (), "Launch earlier."),
        ),
    )


def without_forwards() -> Report:
    """Return a training step on two GPUs that nobody annotated."""
    pairs = (("h2d", "compute", 0), ("d2h", "compute", 7 * MS), ("h2d", "d2h", 0), ("p2p", "memset", 0))
    return replace(
        EMPTY,
        trace=replace(TRACE, devices=({"id": 0, "name": "NVIDIA H100"}, {"id": 1, "name": None}), processes=(41, 42)),
        overlap=tuple(
            overlap("trace", (a, b), (460 * MS, 900 * MS), both_ns, device)
            for device in (0, 1)
            for a, b, both_ns in (*pairs, (f"41/{device}/7", f"41/{device}/13", 0))
        ),
        exposed_copy=tuple(ExposedCopy("trace", 41, device, "h2d", 460 * MS) for device in (0, 1)),
        copies=tuple(copies(device=device, stream=f"41/{device}/7") for device in (0, 1)),
        syncs=(replace(BOUNDARY, forward=None, accidental=None, boundary=False, cost_ns=None, range_name=None),),
        abstained=(Abstention("forwards", "no range is named as one", "name a range `forward 0`"),),
    )


def without_layers() -> Report:
    """Return one forward whose layers have no names: layer measures abstain."""
    plain = measures(
        accounting(compute=10 * MS, stream_queue=4 * MS, launch=900_000),
        first_layer_exposed_ns=None,
        exposed_load_ns=None,
        exposed_load_later_ns=None,
        ideal_ns=None,
        serial_ns=None,
        pipeline_efficiency=None,
        hidden=None,
        compute_inflation_ns=None,
    )
    only = replace(forward(1, plain, stalls_ns=()), layers_from=None)
    return replace(healthy(), forwards=(only,), summary=Summary(1, plain))


SAMPLES = {
    "healthy": healthy,
    "faulty": faulty,
    "without_forwards": without_forwards,
    "without_layers": without_layers,
    "empty": lambda: EMPTY,
}
"""By what it is, a function that makes the report."""
