"""The kernel that moves a layer: it reads pieces of mapped host memory and writes them to the device.

A module of its own because Triton compiles a function from its source and must be importable where it is defined.
"""

import triton
import triton.language as tl


# Triton reads annotations as its own, so the tensors and numbers have none; a kernel has no other way to take tables
@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def kv_cache_transfer(pool, target, sources, targets, sizes, pieces, longest, TILE: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803, PLR0913
    """Copy ``pieces`` runs of 8-byte words from ``pool`` to ``target``; offsets, sizes and ``longest`` in words."""
    tiles = tl.cdiv(longest, TILE)
    for step in range(tl.program_id(0), pieces * tiles, tl.num_programs(0)):
        piece = step // tiles
        words = (step % tiles) * TILE + tl.arange(0, TILE)
        source = tl.multiple_of(tl.load(sources + piece), 2)
        place = tl.multiple_of(tl.load(targets + piece), 2)
        inside = words < tl.multiple_of(tl.load(sizes + piece), 2)
        tl.store(target + place + words, tl.load(pool + source + words, mask=inside), mask=inside)
