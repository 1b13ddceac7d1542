"""Layered captures with the noise of a real machine: what the statistics of a comparison have to live with.

Orientation: one H200, 8 layers of 64 MiB. Loads take 1.213 ms and scatter by 0.2 %, now and then one takes 1 % longer;
compute takes 1.29 ms, scatters by 0.4 % and grows by 1 % over a run as clocks drop; the host's submissions wobble.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from trace_builder import TraceBuilder, layered_forward

if TYPE_CHECKING:
    from pathlib import Path

_START = 1_000_000
_PAUSE = 400_000


@dataclass(frozen=True)
class Noise:
    """How a healthy run wobbles; times in ns, scatter and drift as shares."""

    load_ns: float = 1_213_000
    load_scatter: float = 0.002
    compute_ns: float = 1_290_000
    compute_scatter: float = 0.004
    compute_drift: float = 0.01
    wake_ns: float = 20_000
    layers: int = 8


def noisy_trace(
    path: Path,
    seed: int,
    forwards: int = 40,
    noise: Noise | None = None,
    slower: dict[int, float] | None = None,
    **options: object,
) -> Path:
    """Write a capture of one warm-up and ``forwards`` measured forwards; ``slower`` stretches loads by layer."""
    noise, generator = noise or Noise(), np.random.default_rng(seed)
    builder = TraceBuilder(**options)  # type: ignore[arg-type]
    at = _START
    for number in range(-1, forwards):
        progress = max(number, 0) / max(forwards - 1, 1)
        at = _forward(builder, generator, at, (number, progress), noise, slower or {}) + _PAUSE
    return builder.write(path)


def _forward(
    builder: TraceBuilder,
    generator: np.random.Generator,
    start: int,
    which: tuple[int, float],
    noise: Noise,
    slower: dict[int, float],
) -> int:
    """Add one forward and return when it ends."""
    number, progress = which
    loads, computes = [], []
    load_end = compute_end = start + 100_000
    for layer in range(noise.layers):
        hiccup = 1.01 if generator.random() < 0.05 else 1.0
        scatter = 1 + noise.load_scatter * generator.standard_normal()
        load = noise.load_ns * slower.get(layer, 1.0) * hiccup * scatter
        begin, load_end = load_end, load_end + round(load)
        loads.append([(begin, load_end)])
        wake = round(noise.wake_ns * generator.gamma(4, 0.25))
        clock = 1 + noise.compute_drift * progress
        compute = noise.compute_ns * clock * (1 + noise.compute_scatter * generator.standard_normal())
        begin = max(load_end, compute_end) + wake
        compute_end = begin + round(compute)
        computes.append([(begin, compute_end)])
    layered_forward(builder, start=start, loads=loads, computes=computes, number=number, step=1000, n_bytes=64 << 20)
    return compute_end
