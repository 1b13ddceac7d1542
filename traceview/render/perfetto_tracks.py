"""Writes tracks and slices in Perfetto's protobuf: names once, slices nested, flows by id."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from traceview.model import Ints

_SEQUENCE = 1
_CLEARED, _NEEDS_STATE = 1, 2
"""TracePacket.SequenceFlags: the interned names begin anew; the packet uses interned names"""
_BEGIN, _END = 1, 2
"""TrackEvent.Type"""


@dataclass(frozen=True)
class Slices:
    """What lies on one track: sorted by start, arrays and lists of one length."""

    start: Ints
    end: Ints
    names: Sequence[str]
    category: str
    about: Sequence[dict[str, Any]]
    leaves: Sequence[Sequence[int]] = ()
    """ids of the flows that begin in each slice"""
    reaches: Sequence[Sequence[int]] = ()


class Flows:
    """Collects the ids of arrows by the row that they leave or reach."""

    def __init__(self, rows: int) -> None:
        self._leaves: list[list[int]] = [[] for _ in range(rows)]
        self._reaches: list[list[int]] = [[] for _ in range(rows)]

    def leave(self, rows: Ints, flow: Ints) -> None:
        """Let flow ``flow[i]`` begin in row ``rows[i]``."""
        for row, one in zip(rows.tolist(), flow.tolist(), strict=True):
            self._leaves[row].append(one + 1)

    def reach(self, rows: Ints, flow: Ints) -> None:
        """Let flow ``flow[i]`` end in row ``rows[i]``."""
        for row, one in zip(rows.tolist(), flow.tolist(), strict=True):
            self._reaches[row].append(one + 1)

    def of(self, rows: Ints) -> tuple[list[list[int]], list[list[int]]]:
        """Return the ids that leave and that reach each of the rows."""
        return [self._leaves[row] for row in rows.tolist()], [self._reaches[row] for row in rows.tolist()]


@dataclass
class _Interned:
    """Names that were written already, by what they are for."""

    names: dict[str, int] = field(default_factory=dict)
    fresh: bool = True


class TrackWriter:
    """Writes packets to a streaming builder of the perfetto package; ``shift_ns`` is added to every time."""

    def __init__(self, builder: Any, shift_ns: int = 0) -> None:
        self._builder, self._shift = builder, shift_ns
        self._tracks: dict[tuple[Any, ...], int] = {}
        self._event_names, self._categories, self._annotations = _Interned(), _Interned(), _Interned()
        self._cleared = False

    def process(self, process: int) -> int:
        """Return the track of a process."""

        def describe(track: Any) -> None:
            track.process.pid = process
            track.process.process_name = f"process {process}"

        return self._track(("process", process), describe)

    def thread(self, process: int, thread: int) -> int:
        """Return the track of a host thread."""
        parent = self.process(process)

        def describe(track: Any) -> None:
            track.parent_uuid = parent
            track.name = f"host thread {thread}"

        return self._track(("thread", process, thread), describe)

    def device(self, process: int, device: int, name: str) -> int:
        """Return the track of a GPU as one process uses it."""
        parent = self.process(process)

        def describe(track: Any) -> None:
            track.parent_uuid = parent
            track.name = f"GPU {device} {name}".strip()

        return self._track(("device", process, device), describe)

    def slices(self, parent: int, name: str, slices: Slices) -> None:
        """Write slices on a track below ``parent``; those that neither nest nor follow each other get one more."""
        for lane, rows in enumerate(lanes(slices.start, slices.end)):

            def describe(track: Any, lane: int = lane) -> None:
                track.parent_uuid = parent
                track.name = name
                track.sibling_order_rank = lane

            track = self._track((parent, name, lane), describe)
            for row, begins in nested(slices.start, slices.end, rows):
                self._event(track, slices, row, begins)

    def _track(self, key: tuple[Any, ...], describe: Any) -> int:
        if key not in self._tracks:
            self._tracks[key] = len(self._tracks) + 1
            packet = self._builder.create_packet()
            packet.trusted_packet_sequence_id = _SEQUENCE
            packet.track_descriptor.uuid = self._tracks[key]
            describe(packet.track_descriptor)
            self._builder.write_packet(packet)
        return self._tracks[key]

    def _event(self, track: int, slices: Slices, row: int, begins: bool) -> None:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.sequence_flags = _NEEDS_STATE if self._cleared else _CLEARED | _NEEDS_STATE
        self._cleared = True
        packet.timestamp = int(slices.start[row] if begins else slices.end[row]) + self._shift
        event = packet.track_event
        event.track_uuid = track
        event.type = _BEGIN if begins else _END
        if begins:
            self._describe(packet, slices, row)
        self._builder.write_packet(packet)

    def _describe(self, packet: Any, slices: Slices, row: int) -> None:
        event, interned = packet.track_event, packet.interned_data
        event.name_iid = self._iid(self._event_names, slices.names[row], interned.event_names)
        event.category_iids.append(self._iid(self._categories, slices.category, interned.event_categories))
        for key, value in slices.about[row].items():
            annotation = event.debug_annotations.add()
            annotation.name_iid = self._iid(self._annotations, key, interned.debug_annotation_names)
            if isinstance(value, str):
                annotation.string_value = value
            elif isinstance(value, float):
                annotation.double_value = value
            else:
                annotation.int_value = int(value)
        if slices.leaves:
            event.flow_ids.extend(slices.leaves[row])
        if slices.reaches:
            event.terminating_flow_ids.extend(slices.reaches[row])

    @staticmethod
    def _iid(known: _Interned, name: str, written: Any) -> int:
        if name not in known.names:
            known.names[name] = len(known.names) + 1
            entry = written.add()
            entry.iid = known.names[name]
            entry.name = name
        return known.names[name]


def lanes(start: Ints, end: Ints) -> list[Ints]:
    """Return rows by lane such that on each lane intervals only follow each other or nest; most need one lane.

    ::

        ████████··      lane 0
        ··███·····      lane 0: nested
        ·····█████      lane 1: neither
    """
    order = np.lexsort((-end, start))
    open_: list[list[int]] = []
    found: list[list[int]] = []
    for row, begin, finish in zip(order.tolist(), start[order].tolist(), end[order].tolist(), strict=True):
        lane = next((lane for lane, stack in enumerate(open_) if _fits(stack, begin, finish)), len(open_))
        if lane == len(open_):
            open_.append([])
            found.append([])
        open_[lane].append(finish)
        found[lane].append(row)
    return [np.array(rows, dtype=np.int64) for rows in found]


def _fits(stack: list[int], begin: int, finish: int) -> bool:
    """Close what ends by ``begin``, and return whether an interval nests in what is left open."""
    while stack and stack[-1] <= begin:
        stack.pop()
    return not stack or stack[-1] >= finish


def nested(start: Ints, end: Ints, rows: Ints) -> Iterator[tuple[int, bool]]:
    """Yield (row, whether it begins) of intervals that nest, in the order of time, ends before begins."""
    open_: list[tuple[int, int]] = []
    for row, begin, finish in zip(rows.tolist(), start[rows].tolist(), end[rows].tolist(), strict=True):
        while open_ and open_[-1][1] <= begin:
            yield open_.pop()[0], False
        yield row, True
        open_.append((row, finish))
    while open_:
        yield open_.pop()[0], False
