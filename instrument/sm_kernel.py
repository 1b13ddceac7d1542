"""The kernel that moves a layer: it reads pieces of mapped host memory and writes them to the device.

A module of its own because Triton compiles a function from its source and must be importable where it is defined.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def kv_cache_transfer(  # noqa: PLR0913  (a kernel has no other way to take its tables)
    pool: Any,
    target: Any,
    sources: Any,
    targets: Any,
    sizes: Any,
    pieces: Any,
    longest: Any,
    TILE: tl.constexpr,  # noqa: N803  (Triton's custom for what is known when compiling)
) -> None:
    """Copy ``pieces`` runs of 8-byte words from ``pool`` to ``target``; offsets, sizes and ``longest`` in words."""
    tiles = tl.cdiv(longest, TILE)
    for step in range(tl.program_id(0), pieces * tiles, tl.num_programs(0)):
        piece = step // tiles
        words = (step % tiles) * TILE + tl.arange(0, TILE)
        source = tl.multiple_of(tl.load(sources + piece), 2)
        place = tl.multiple_of(tl.load(targets + piece), 2)
        inside = words < tl.multiple_of(tl.load(sizes + piece), 2)
        tl.store(target + place + words, tl.load(pool + source + words, mask=inside), mask=inside)
