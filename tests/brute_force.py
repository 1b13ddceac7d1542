"""The roles and the accounting of one forward, written a second time: slow, plain, one nanosecond after the other.

A twin of ``traceview.analysis`` for tests. It follows the text of the definitions and shares no code with what it
checks. Scenes are plain dicts with small integer times:

- operation: ``start, end, kind`` (``kernel copy memset graph``), ``stream, launch`` (index of its call or None),
  ``direction`` (``h2d d2h d2d p2p h2h`` or None), ``memory`` (``pinned pageable device`` or None), ``bytes``
- call: ``start, end, thread, name`` - range: ``start, end, thread, name``

Where the definitions leave a choice, the reading taken here is marked "Reading:".
"""

from __future__ import annotations

import re
from typing import Any

Row = dict[str, Any]

CATEGORIES = (
    "compute load_copy load_gap stream_queue engine_queue sync implicit_sync submit host sm_busy launch".split()  # noqa: SIM905
)
SMALL_COPY_BYTES = 1 << 20
KINDS = ("kernel", "copy", "memset", "graph")
EXPLICIT_SYNCS = re.compile(r"cuda(Device|Stream|Event|Thread)Synchronize|cu(Ctx|Stream|Event)Synchronize")
ALLOCATORS = re.compile(
    r"cudaMalloc(Host|Managed)?|cudaFree(Host)?|cudaHost(Alloc|Register|Unregister)|cuMem(Alloc|Free)"
)


def plain_name(api: str) -> str:
    """Return an API name without ``_v3020`` and ``_ptsz``."""
    return re.sub(r"_v\d+$", "", re.sub(r"_ptsz$", "", api))


def is_explicit_sync(call: Row) -> bool:
    """Return whether a call synchronises on purpose."""
    return EXPLICIT_SYNCS.fullmatch(plain_name(call["name"])) is not None


def is_implicit_sync(call: Row, operations: list[Row], calls: list[Row]) -> bool:
    """Return whether a call blocks without saying so."""
    name = plain_name(call["name"])
    if ALLOCATORS.fullmatch(name):
        return True
    if ("Memcpy" in name or "Memset" in name) and "Async" not in name:
        return True
    launched = [op for op in operations if op["launch"] is not None and calls[op["launch"]] is call]
    return any(op["kind"] == "copy" and op["memory"] == "pageable" for op in launched)


def is_async_copy(call: Row) -> bool:
    """Return whether a call submits a copy and returns."""
    name = plain_name(call["name"])
    return "Memcpy" in name and "Async" in name


def holds(row: Row, moment: int) -> bool:
    """Return whether a half-open interval holds a moment."""
    return bool(row["start"] <= moment < row["end"])


def layer_of(name: str, word: str) -> int | None:
    """Return the layer that a range name ``word layer N`` names, or None."""
    found = re.search(rf"(?i)^{word}[ _]?layer[ _#=:]*(\d+)$", name)
    return int(found[1]) if found else None


def innermost(launch: Row, ranges: list[Row], forward: Row) -> Row | None:
    """Return the innermost load or compute range of the launching thread in which the launch started, or None."""
    found: Row | None = None
    for row in ranges:
        layered = layer_of(row["name"], "load") is not None or layer_of(row["name"], "compute") is not None
        if not layered or row["thread"] != launch["thread"] or not holds(row, launch["start"]):
            continue
        # a range that some other forward owns does not count; one on a loader thread counts where it starts
        if not holds(forward, row["start"]):
            continue
        if found is None or (row["start"], -row["end"]) >= (found["start"], -found["end"]):
            found = row
    return found


def in_forward(op: Row, calls: list[Row], ranges: list[Row], forward: Row) -> bool:
    """Return whether an operation belongs to a forward.

    Reading: by its launch, on the forward's own thread or in a load range of another thread that starts inside the
    forward; an operation without a launch is in no range, so it belongs to no forward.
    """
    if op["launch"] is None:
        return False
    launch = calls[op["launch"]]
    if launch["thread"] == forward["thread"]:
        return holds(forward, launch["start"])
    around = innermost(launch, ranges, forward)
    return around is not None and layer_of(around["name"], "load") is not None


def give_roles(operations: list[Row], calls: list[Row], ranges: list[Row], forward: Row) -> None:
    """Set ``role`` and ``layer`` on every operation; operations outside the forward get role None."""
    for op in operations:
        op["role"], op["layer"], op["named"] = None, None, False
        op["inside"] = in_forward(op, calls, ranges, forward)
        around = innermost(calls[op["launch"]], ranges, forward) if op["inside"] else None
        if around is None:
            continue
        op["named"] = True
        if layer_of(around["name"], "load") is not None:
            op["role"], op["layer"] = "load", layer_of(around["name"], "load")
        else:
            op["role"], op["layer"] = role_in_compute(op), layer_of(around["name"], "compute")
    load_streams, compute_streams = carriers(operations)
    for op in operations:
        if op["inside"] and not op["named"]:
            op["role"] = role_by_kind(op, load_streams, compute_streams)


def carriers(operations: list[Row]) -> tuple[set[Any], set[Any]]:
    """Return which streams carry loads and which carry compute.

    Reading: those of the operations that this forward's load (compute) ranges name. A forward that names no load takes
    the streams with at least a tenth of the trace's host-to-device bytes; one that names no compute, those on which
    its kernels and graphs run.
    """
    inside = [op for op in operations if op["inside"]]
    load_streams = {op["stream"] for op in inside if op["named"] and op["role"] == "load"}
    if not load_streams:
        uploads = [op for op in operations if op["direction"] == "h2d"]
        total = sum(op["bytes"] for op in uploads)
        for stream in {op["stream"] for op in uploads}:
            if 10 * sum(op["bytes"] for op in uploads if op["stream"] == stream) >= total > 0:
                load_streams.add(stream)
    compute_streams = {op["stream"] for op in inside if op["named"] and op["role"] == "compute"}
    if not compute_streams:
        compute_streams = {op["stream"] for op in inside if op["kind"] in ("kernel", "graph")}
    return load_streams, compute_streams


def role_in_compute(op: Row) -> str:
    """Return the role of an operation launched in a compute range."""
    if op["kind"] in ("kernel", "graph", "memset") or op["direction"] == "d2d":
        return "compute"
    return {"d2h": "readback", "h2d": "input"}.get(op["direction"], "other")


def role_by_kind(op: Row, load_streams: set[Any], compute_streams: set[Any]) -> str:
    """Return the role of an operation launched in the forward but in no layer's range."""
    if op["direction"] == "h2d":
        return "load" if op["stream"] in load_streams else "input"
    if op["direction"] == "d2h":
        return "writeback"
    return "compute" if op["stream"] in compute_streams else "other"


def running(rows: list[Row], moment: int) -> bool:
    """Return whether any of the rows runs at a moment."""
    return any(holds(row, moment) for row in rows)


def busy(rows: list[Row]) -> set[int]:
    """Return every nanosecond in which some row runs."""
    return {moment for row in rows for moment in range(row["start"], row["end"])}


class Forward:
    """Everything that the accounting of one forward looks at."""

    def __init__(self, operations: list[Row], calls: list[Row], ranges: list[Row], forward: Row) -> None:
        give_roles(operations, calls, ranges, forward)
        self.operations, self.calls, self.ranges = operations, calls, ranges
        self.loads = [op for op in operations if op["role"] == "load"]
        # Reading: of compute operations that start together the shorter comes first, then the one listed first in the
        # order of the export's tables: kernels, copies, memsets
        computes = [op for op in operations if op["role"] == "compute"]
        self.computes = sorted(computes, key=lambda op: (op["start"], op["end"], KINDS.index(op["kind"])))
        self.firsts: dict[int, Row] = {}
        for op in self.computes:
            if op["layer"] is not None:
                self.firsts.setdefault(op["layer"], op)

    def category(self, op: Row, moment: int, gap_start: int) -> str:
        """Return what one nanosecond of the gap before a compute operation was spent on: the first that applies."""
        if op["layer"] is not None and self.firsts[op["layer"]] is op and moment < self.load_end(op["layer"]):
            return "load_copy" if running(self.loads, moment) else "load_gap"
        others = [other for other in self.operations if other is not op and other["stream"] == op["stream"]]
        if running(others, moment):
            return "stream_queue"
        if self.engine_is_taken(op, moment, gap_start):
            return "engine_queue"
        if op["launch"] is not None and moment < self.calls[op["launch"]]["start"]:
            return self.host_category(self.calls[op["launch"]]["thread"], moment)
        kernels = [other for other in self.operations if other is not op and other["kind"] == "kernel"]
        return "sm_busy" if running(kernels, moment) else "launch"

    def load_end(self, layer: int) -> int:
        """Return when the last load operation of a layer ends; long ago for a layer without load."""
        return max((op["end"] for op in self.loads if op["layer"] == layer), default=-(10**9))

    def engine_is_taken(self, op: Row, moment: int, gap_start: int) -> bool:
        """Return whether a small copy on the operation's stream waits for its copy engine.

        Reading: it "had been launched" from the moment at which its launch began.
        """
        for copy in self.operations:
            if copy["kind"] != "copy" or copy["stream"] != op["stream"] or copy["bytes"] > SMALL_COPY_BYTES:
                continue
            if copy["launch"] is None or not gap_start <= copy["start"] < op["start"]:
                continue
            if not self.calls[copy["launch"]]["start"] <= moment < copy["start"]:
                continue
            for other in self.operations:
                elsewhere = other["kind"] == "copy" and other["stream"] != copy["stream"]
                if elsewhere and other["direction"] == copy["direction"] and holds(other, moment):
                    return True
        return False

    def host_category(self, thread: Any, moment: int) -> str:
        """Return what the launching thread was busy with."""
        inside = [call for call in self.calls if call["thread"] == thread and holds(call, moment)]
        if any(is_explicit_sync(call) for call in inside):
            return "sync"
        if any(is_implicit_sync(call, self.operations, self.calls) for call in inside):
            return "implicit_sync"
        ranges = [row for row in self.ranges if row["thread"] == thread and holds(row, moment)]
        if any(layer_of(row["name"], "load") is not None for row in ranges) or any(map(is_async_copy, inside)):
            return "submit"
        return "host"


def account(operations: list[Row], calls: list[Row], ranges: list[Row], forward: Row) -> Row | None:
    """Return one forward's measures, or None where it has no compute operation.

    Keys: ``t0, t1, makespan, categories, layered, first_layer_exposed, exposed_load, exposed_load_later, ideal, serial,
    overlap, load_busy, compute_busy, computes, labels, before``. ``labels`` maps each nanosecond of [t0, t1) to its
    category, ``before`` each idle one to the compute operation after the gap. ``layered`` says whether layers both load
    and compute: without that, how loads hide cannot be judged.
    """
    scene = Forward(operations, calls, ranges, forward)
    if not scene.computes:
        return None
    t0 = min(op["start"] for op in scene.loads + scene.computes)
    t1 = max(op["end"] for op in scene.computes)
    labels: dict[int, str] = {}
    before: dict[int, Row] = {}
    exposed_later = 0
    first = next((op for op in scene.computes if op["layer"] is not None), None)
    reached = t0
    for op in scene.computes:
        for moment in range(reached, op["start"]):
            labels[moment], before[moment] = scene.category(op, moment, reached), op
            if labels[moment].startswith("load_") and first is not None and op["layer"] != first["layer"]:
                exposed_later += 1
        for moment in range(op["start"], op["end"]):
            labels[moment] = "compute"
        reached = max(reached, op["end"])
    categories = {category: sum(label == category for label in labels.values()) for category in CATEGORIES}
    ideal, serial = flow_shop(scene.loads, scene.computes)
    told = bool(scene.loads) or copies_are_told(operations, range(forward["start"], t1))
    return {
        "t0": t0,
        "t1": t1,
        "makespan": t1 - t0,
        "categories": categories,
        "layered": first is not None and any(op["layer"] is not None for op in scene.loads),
        "first_layer_exposed": None if first is None else first["start"] - t0,
        "exposed_load": categories["load_copy"] + categories["load_gap"],
        "exposed_load_later": exposed_later,
        "ideal": ideal,
        "serial": serial,
        "overlap": len(busy(scene.loads) & busy(scene.computes)) if told else None,
        "load_busy": len(busy(scene.loads)) if told else None,
        "compute_busy": len(busy(scene.computes)),
        "labels": labels,
        "before": before,
        "computes": scene.computes,
    }


def copies_are_told(operations: list[Row], time: range) -> bool:
    """Return whether no load found means that there was none: copies were traced, and none beside lacks its launch."""
    alone = [op for op in operations if op["direction"] == "h2d" and op["launch"] is None and op["start"] in time]
    return any(op["kind"] == "copy" for op in operations) and not alone


def flow_shop(loads: list[Row], computes: list[Row]) -> tuple[int, int]:
    """Return the ideal and the serial time of loading and computing layer after layer.

    Reading: layers follow each other as they begin to compute; those that only load come last, by number. In the ideal
    a nanosecond counts for the first layer that has it, and loads of layers that do not compute are left out.
    """
    computed = list(dict.fromkeys(op["layer"] for op in computes if op["layer"] is not None))
    layers = [*computed, *sorted({op["layer"] for op in loads if op["layer"] is not None} - set(computed))]
    load = [len(busy([op for op in loads if op["layer"] == layer])) for layer in layers]
    compute = [len(busy([op for op in computes if op["layer"] == layer])) for layer in layers]
    added: list[list[int]] = []
    for rows in (loads, computes):
        seen: set[int] = set()
        shares = []
        for layer in computed:
            own = busy([op for op in rows if op["layer"] == layer])
            shares.append(len(own - seen))
            seen |= own
        added.append(shares)
    ways = [sum(added[0][: k + 1]) + sum(added[1][k:]) for k in range(len(computed))]
    return max(ways, default=0), sum(load) + sum(compute)
