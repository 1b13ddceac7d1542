"""Times from CUDA events: recorded inside a forward, read after it, so that reading disturbs nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from instrument.cuda.streams import elapsed_ns, new_event

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Marks:
    """One event at the start and the end of every layer's load and compute; reused by every forward."""

    load_start: list[torch.cuda.Event]
    load_end: list[torch.cuda.Event]
    compute_start: list[torch.cuda.Event]
    compute_end: list[torch.cuda.Event]


def marks_for(layers: int) -> Marks:
    """Create the events of so many layers."""
    columns = [[new_event() for _ in range(layers)] for _ in range(4)]
    return Marks(*columns)


@dataclass(frozen=True)
class LayerTimes:
    """How long one layer's load and compute took, each from its first operation to its last, in ns."""

    layer: int
    load_ns: int
    compute_ns: int


@dataclass(frozen=True)
class ForwardTimes:
    """One forward on the device; times in ns, rates in bytes per second.

    ``makespan_ns``: first load's start to last compute's end; ``first_layer_exposed_ns``: first load's start to the
    first layer's first kernel; ``load_busy_ns``: the layers' load times together, ``load_bytes_per_s`` the rate over
    them; ``load_span_ns``: first load's start to the last load's end, gaps between layers included, and
    ``load_span_bytes_per_s`` the rate over that. Gaps between the pieces of one layer are in both, since events stand
    before and after a layer's pieces only. The first compute starts with its event (see `instrument.cuda.gate`), and so
    does the first load, unless many calls submit it or its memory is pageable: then, as with any later layer whose
    stream is idle, the event comes before the call that submits the first operation, some 10 to 200 us early.
    """

    number: int
    makespan_ns: int
    first_layer_exposed_ns: int
    load_busy_ns: int
    load_bytes_per_s: int
    load_span_ns: int
    load_span_bytes_per_s: int
    layers: list[LayerTimes]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def read_forward(marks: Marks, number: int, n_bytes: int) -> ForwardTimes:
    """Read the forward that ended last; every event must have happened."""
    origin = marks.load_start[0]

    def at(event: torch.cuda.Event) -> int:
        return round(elapsed_ns(origin, event))

    load_start, load_end, compute_start, compute_end = (
        [at(event) for event in events]
        for events in (marks.load_start, marks.load_end, marks.compute_start, marks.compute_end)
    )
    return forward_times(number, n_bytes, [load_start, load_end, compute_start, compute_end])


def forward_times(number: int, n_bytes: int, stamps: list[list[int]]) -> ForwardTimes:
    """Combine the stamps of a forward (load starts, load ends, compute starts, compute ends; ns, one per layer)."""
    load_start, load_end, compute_start, compute_end = stamps
    begin = min(load_start)
    span = max(load_end) - begin
    layers = [
        LayerTimes(layer, load_end[layer] - load_start[layer], compute_end[layer] - compute_start[layer])
        for layer in range(len(load_start))
    ]
    busy = sum(layer.load_ns for layer in layers)
    return ForwardTimes(
        number=number,
        makespan_ns=max(compute_end) - begin,
        first_layer_exposed_ns=compute_start[0] - begin,
        load_busy_ns=busy,
        load_bytes_per_s=round(n_bytes * 1e9 / busy),
        load_span_ns=span,
        load_span_bytes_per_s=round(n_bytes * 1e9 / span),
        layers=layers,
    )
