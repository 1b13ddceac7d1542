"""Which rows a timeline has, and the boxes on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.overlap import stream_labels
from traceview.analysis.timeline import Boxes, Row, RowKind, What
from traceview.model import CallKind, Direction, Kind, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traceview.analysis.busy import Busy
    from traceview.model import Ints, Trace

STREAMS_SHOWN = 12
THREADS_SHOWN = 3
_SYNTHETIC = 1 << 40
"""Codes of names from here on are of what has none in the trace: copies by direction and memory, memsets, graphs."""


@dataclass(frozen=True)
class Scene:
    """The operations and calls to be shown, before they are put on rows."""

    trace: Trace
    busy: Busy
    start_ns: int
    end_ns: int
    operations: Ints
    """rows of ``Trace.operations``"""
    what: Ints
    """:class:`What` of each operation"""
    layer: Ints
    threads: tuple[int, ...]
    """host threads to show, the one that matters most first"""
    ranges: Ints
    """rows of ``Trace.ranges`` to show"""


class Names:
    """Collects the names that boxes and holes use; gives each an index."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._index: dict[int, int] = {}

    def index(self, codes: Ints) -> Ints:
        """Return the index of each code's name; -1 stays -1."""
        known, inverse = np.unique(codes, return_inverse=True)
        found = [-1 if code < 0 else self._index.setdefault(code, len(self._index)) for code in known.tolist()]
        return np.array(found, dtype=np.int64)[inverse.reshape(-1)]

    def texts(self) -> tuple[str, ...]:
        """Return all names so far, by index."""
        return tuple(self._text(code) for code in self._index)

    def _text(self, code: int) -> str:
        if code < _SYNTHETIC:
            return self._trace.names[code]
        kind, place = divmod(code - _SYNTHETIC, 100)
        if kind == Kind.COPY:
            direction, memory = (int(digit) - 1 for digit in divmod(place, 10))
            where = "" if memory in (Memory.UNKNOWN, Memory.DEVICE) else f" {Memory(memory).name.lower()}"
            way = "" if direction == Direction.OTHER else f"{Direction(direction).name.lower()}"
            return f"{way}{where} copy".strip()
        return {Kind.MEMSET: "memset", Kind.GRAPH: "graph launch"}.get(Kind(kind), "kernel")


def operation_names(trace: Trace, rows: Ints) -> Ints:
    """Return the code of each operation's name; what is no kernel gets one that says what it is."""
    operations = trace.operations
    kind, direction, memory = (
        column[rows].astype(np.int64) for column in (operations.kind, operations.direction, operations.memory)
    )
    place = np.where(kind == Kind.COPY, (direction + 1) * 10 + memory + 1, 0)
    name = operations.name[rows]
    return np.where(name >= 0, name, _SYNTHETIC + kind * 100 + place)


def lay_out(scene: Scene, names: Names) -> tuple[tuple[Row, ...], Boxes, int]:
    """Return the rows from top to bottom, every box on them, and how many streams and threads got no row."""
    shown = scene.threads[:THREADS_SHOWN]
    streams = _streams(scene)
    rows = [row for thread in shown for row in _thread_rows(scene, thread, shown)]
    rows += _stream_rows(scene, streams[:STREAMS_SHOWN])
    parts: list[Boxes] = []
    for index, row in enumerate(rows):
        draw = _BOXES.get(row.kind, _operation_boxes)
        parts.append(draw(scene, names, index, row.of))
    boxes = _joined(parts)
    left_out = len(scene.threads) - len(shown) + max(0, len(streams) - STREAMS_SHOWN)
    return tuple(rows), boxes.take(np.lexsort((boxes.start, boxes.row))), left_out


def _streams(scene: Scene) -> list[int]:
    """Return the streams with work, the one with most of it first."""
    stream = scene.trace.operations.stream[scene.operations]
    spent = np.bincount(stream, weights=_lengths(scene).astype(float), minlength=len(scene.trace.streams))
    present = np.unique(stream)
    return sorted(present.tolist(), key=lambda one: (-spent[one], one))


def _stream_rows(scene: Scene, streams: Iterable[int]) -> list[Row]:
    labels = _short_labels(scene.trace)
    rows = [Row(*_kind_of_stream(scene, stream, labels[stream]), stream) for stream in streams]
    order = list(RowKind)
    return sorted(rows, key=lambda row: (order.index(row.kind), scene.trace.streams[row.of]))


def _kind_of_stream(scene: Scene, stream: int, label: str) -> tuple[RowKind, str]:
    """Return what a stream is there for by what it spends its time on, and its label."""
    own = scene.trace.operations.stream[scene.operations] == stream
    spent = np.bincount(scene.what[own], weights=_lengths(scene)[own].astype(float), minlength=len(What))
    if spent[What.COMPUTE] > 0:
        loads = spent[What.LOAD] > 0
        return RowKind.COMPUTE, f"load+compute, {label}" if loads else f"compute, {label}"
    if spent[What.LOAD] > 0:
        return RowKind.LOAD, f"load, {label}"
    if spent[What.WRITEBACK] > 0:
        return RowKind.WRITEBACK, f"writeback, {label}"
    return RowKind.OTHER, label


def _short_labels(trace: Trace) -> list[str]:
    """Return ``stream 7`` for each stream, with its device, process and context where that is not unique."""
    plain = [f"stream {stream.number}" for stream in trace.streams]
    on_gpu = [f"GPU {stream.device} stream {stream.number}" for stream in trace.streams]
    full = stream_labels(trace)
    one_gpu = len({stream.device for stream in trace.streams}) == 1
    return [
        short if one_gpu and plain.count(short) == 1 else longer if on_gpu.count(longer) == 1 else f"stream {whole}"
        for short, longer, whole in zip(plain, on_gpu, full, strict=True)
    ]


def _thread_rows(scene: Scene, thread: int, shown: tuple[int, ...]) -> list[Row]:
    number = f" {scene.trace.threads[thread].number}" if len(shown) > 1 else ""
    rows = [Row(RowKind.HOST, f"host thread{number}", thread)]
    if (scene.trace.ranges.thread[scene.ranges] == thread).any():
        rows.insert(0, Row(RowKind.RANGES, f"ranges{number}", thread))
    return rows


def _lengths(scene: Scene) -> Ints:
    operations = scene.trace.operations
    lengths: Ints = operations.end[scene.operations] - operations.start[scene.operations]
    return lengths


def _operation_boxes(scene: Scene, names: Names, row: int, stream: int) -> Boxes:
    own = scene.trace.operations.stream[scene.operations] == stream
    rows = scene.operations[own]
    operations = scene.trace.operations.take(rows)
    launched = operations.launch >= 0
    queued = np.full(len(rows), -1, dtype=np.int64)
    queued[launched] = np.maximum(operations.start[launched] - scene.trace.calls.start[operations.launch[launched]], 0)
    return Boxes(
        row=np.full(len(rows), row, dtype=np.int64),
        start=operations.start,
        end=operations.end,
        what=scene.what[own],
        name=names.index(operation_names(scene.trace, rows)),
        layer=scene.layer[own],
        n_bytes=operations.n_bytes,
        queued=queued,
        count=np.maximum(operations.pieces, 1),
        busy=operations.end - operations.start,
    )


def _call_boxes(scene: Scene, names: Names, row: int, thread: int) -> Boxes:
    calls = scene.trace.calls
    own = scene.busy.calls_on(thread)
    own = own[(calls.start[own] < scene.end_ns) & (calls.end[own] > scene.start_ns)]
    blocks = np.isin(scene.busy.call_kinds[own], (CallKind.SYNC, CallKind.BLOCKING))
    layer = np.full(len(calls), -1, dtype=np.int64)
    launch = scene.trace.operations.launch[scene.operations]
    layer[launch[launch >= 0]] = scene.layer[launch >= 0]
    what = np.where(blocks, int(What.BLOCKING), int(What.CALL))
    return _host_boxes((calls.start[own], calls.end[own]), row, what, names.index(calls.name[own]), layer[own])


def _range_boxes(scene: Scene, names: Names, row: int, thread: int) -> Boxes:
    ranges = scene.trace.ranges
    own = scene.ranges[ranges.thread[scene.ranges] == thread]
    what = np.full(len(own), int(What.RANGE), dtype=np.int64)
    nothing = np.full(len(own), -1, dtype=np.int64)
    return _host_boxes((ranges.start[own], ranges.end[own]), row, what, names.index(ranges.name[own]), nothing)


def _host_boxes(times: tuple[Ints, Ints], row: int, what: Ints, name: Ints, layer: Ints) -> Boxes:
    start, end = times
    zero = np.zeros(len(start), dtype=np.int64)
    return Boxes(
        row=zero + row,
        start=start,
        end=end,
        what=what,
        name=name,
        layer=layer,
        n_bytes=zero,
        queued=zero - 1,
        count=zero + 1,
        busy=end - start,
    )


def _joined(parts: list[Boxes]) -> Boxes:
    if not parts:
        return Boxes(*(np.empty(0, dtype=np.int64),) * 10)
    columns = Boxes.__dataclass_fields__
    return Boxes(**{name: np.concatenate([getattr(part, name) for part in parts]).astype(np.int64) for name in columns})


_BOXES: dict[RowKind, Callable[[Scene, Names, int, int], Boxes]] = {
    RowKind.HOST: _call_boxes,
    RowKind.RANGES: _range_boxes,
}
