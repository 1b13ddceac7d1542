"""The compute of a layer: a few bf16 matrix products over the layer's own bytes, as long as the options ask for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import torch

from instrument.cuda.streams import elapsed_ns, new_event

if TYPE_CHECKING:
    from collections.abc import Callable

_MATMULS = 2
"""Few, since every boundary between kernels costs some microseconds in which nothing computes."""

_MOST_ROWS = 32768
_ROW_STEP = 128
_WIDEST = 4096
_SPIN_UP_S = 0.3
_ROUNDS = 8


@dataclass(frozen=True)
class Size:
    """How much a layer computes: how many products, of how many rows, taking how long (ns) with nothing beside them."""

    matmuls: int
    rows: int
    measured_ns: int


def calibrate(target_ns: float, measure: Callable[[int, int], float]) -> Size:
    """Find the size whose time is closest to ``target_ns``; ``measure(matmuls, rows)`` returns ns.

    Time grows in steps with the rows (whole tiles on whole SMs), so the closest of several tries is kept.
    """
    matmuls, rows = _MATMULS, 4096
    tried: dict[tuple[int, int], float] = {}
    for _ in range(_ROUNDS):
        if (matmuls, rows) in tried:
            break
        tried[matmuls, rows] = measure(matmuls, rows)
        matmuls, rows = _next_size(matmuls, rows, target_ns / tried[matmuls, rows])
    (matmuls, rows), time_ns = min(tried.items(), key=lambda item: abs(item[1] - target_ns))
    return Size(matmuls, rows, round(time_ns))


def _next_size(matmuls: int, rows: int, factor: float) -> tuple[int, int]:
    work = matmuls * rows * factor
    while work / matmuls > _MOST_ROWS:
        matmuls *= 2
    while matmuls > 1 and work / matmuls < _ROW_STEP:
        matmuls //= 2
    return matmuls, max(_ROW_STEP, round(work / matmuls / _ROW_STEP) * _ROW_STEP)


@dataclass(frozen=True)
class LayerCompute:
    """The operands of every layer's products: a layer's bytes are the weights, so compute really needs its load."""

    activations: torch.Tensor
    output: torch.Tensor
    weights: list[torch.Tensor]

    def launch(self, layer: int, matmuls: int, rows: int) -> None:
        """Launch one layer's products on the current stream; nothing is allocated."""
        activations, output = self.activations[:rows], self.output[:rows]
        for _ in range(matmuls):
            torch.mm(activations, self.weights[layer], out=output)


def layer_compute(buffers: list[torch.Tensor]) -> LayerCompute:
    """Prepare the operands over the layers' device buffers (uint8)."""
    inner = square_side(buffers[0].numel())
    options = {"dtype": torch.bfloat16, "device": "cuda"}
    activations = torch.randn(_MOST_ROWS, inner, **options)  # type: ignore[call-overload]
    output = torch.empty(_MOST_ROWS, inner, **options)  # type: ignore[call-overload]
    weights = [buffer[: inner * inner * 2].view(torch.bfloat16).view(inner, inner) for buffer in buffers]
    return LayerCompute(activations, output, weights)


def square_side(layer_bytes: int) -> int:
    """Return the side of the largest bf16 square in a layer: a multiple of 64 where there is room, at most 4096."""
    side = int((layer_bytes // 2) ** 0.5)
    return min(_WIDEST, side // 64 * 64 if side >= 64 else side)


def stopwatch(compute: LayerCompute, stream: torch.cuda.Stream, repeats: int = 9) -> Callable[[int, int], float]:
    """Return ``measure(matmuls, rows)``: the median time in ns of a layer's compute, after it was launched once."""

    _spin_up(compute, stream)

    def measure(matmuls: int, rows: int) -> float:
        marks = [new_event() for _ in range(repeats + 1)]
        with torch.cuda.stream(stream):
            compute.launch(0, matmuls, rows)
            for index, mark in enumerate(marks):
                mark.record(stream)
                if index < repeats:
                    compute.launch(0, matmuls, rows)
        stream.synchronize()
        return median(elapsed_ns(a, b) for a, b in pairwise(marks))

    return measure


def _spin_up(compute: LayerCompute, stream: torch.cuda.Stream) -> None:
    """Keep the device busy until its clocks have left their idle state: times before that mislead."""
    until = time.perf_counter() + _SPIN_UP_S
    with torch.cuda.stream(stream):
        while time.perf_counter() < until:
            compute.launch(0, _MATMULS, _MOST_ROWS // 4)
            stream.synchronize()
