"""What a load consists of: the pieces of every layer, their bytes, and the best time any order of work allows.

Nothing here needs a GPU or PyTorch. A *piece* is one contiguous run of bytes: its place in the host pool, its place in
the layer's buffer on the device, and its size. Layouts are those of SGLang's host pools (``layer_first``,
``page_first``, ``page_first_direct`` in ``sglang.srt.mem_cache``), for one buffer per layer; a pool that keeps keys
and values apart has twice the pieces of half the size, which is half of ``token_bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from instrument.errors import WrongUsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

WORD_BYTES = 16
"""Every piece starts at and has a multiple of this many bytes: the widest access of a GPU thread."""

MOST_PIECES = 1 << 24
"""Pieces of a layer that are planned one by one; the sample with the most has 1,024."""

_GIGA = 1_000_000_000


@dataclass(frozen=True)
class Shape:
    """How many bytes each layer has and how the host pool holds them.

    ``layout`` is a key of `LAYOUTS`. The paged layouts use ``page_tokens`` and ``token_bytes`` (bytes of one token in
    one layer) and shuffle the pages by ``seed``; ``contiguous`` has no pages and may be cut into ``piece_bytes``.
    """

    layers: int
    layer_bytes: int
    layout: str = "contiguous"
    page_tokens: int = 64
    token_bytes: int = 4096
    piece_bytes: int | None = None
    seed: int = 0

    @property
    def page_bytes(self) -> int:
        """Bytes of one page in one layer."""
        return self.page_tokens * self.token_bytes

    @property
    def pages(self) -> int:
        """Pages in one layer."""
        return self.layer_bytes // self.page_bytes

    @property
    def pool_bytes(self) -> int:
        """Bytes of the host pool: what one forward loads."""
        return self.layers * self.layer_bytes


def check_shape(shape: Shape) -> None:
    """Raise `WrongUsageError` when the sizes do not fit together."""
    if shape.layout not in LAYOUTS:
        raise WrongUsageError(f"no layout '{shape.layout}': choose one of {', '.join(LAYOUTS)}")
    if min(shape.layers, shape.layer_bytes, shape.page_tokens, shape.token_bytes) < 1:
        raise WrongUsageError("layers, bytes and tokens must be at least 1")
    if shape.layout == "contiguous":
        _check_pieces(shape)
    elif shape.piece_bytes is not None:
        raise WrongUsageError(
            "--piece-kib cuts a layer without pages: leave out --layout, or use --page-tokens instead"
        )
    elif shape.token_bytes % WORD_BYTES:
        raise WrongUsageError(f"--token-bytes must be a multiple of {WORD_BYTES}, not {shape.token_bytes}")
    elif shape.layer_bytes % shape.page_bytes:
        raise WrongUsageError(
            f"a layer of {shape.layer_bytes} bytes is no whole number of pages of {shape.page_bytes}: "
            "change --mib-per-layer, --page-tokens or --token-bytes"
        )

    if (count := _pieces_per_layer(shape)) > MOST_PIECES:
        raise WrongUsageError(
            f"a layer would have {count:,} pieces, at most {MOST_PIECES:,} can be planned: use a smaller "
            "--mib-per-layer, or larger pieces"
        )


def _pieces_per_layer(shape: Shape) -> int:
    if shape.layout == "contiguous":
        return -(-shape.layer_bytes // (shape.piece_bytes or shape.layer_bytes))
    return shape.pages * (shape.page_tokens if shape.layout == "page-first" else 1)


def _check_pieces(shape: Shape) -> None:
    if shape.layer_bytes % WORD_BYTES:
        raise WrongUsageError(f"a layer must have a multiple of {WORD_BYTES} bytes, not {shape.layer_bytes}")
    if shape.piece_bytes is not None and (shape.piece_bytes < 1 or shape.piece_bytes % WORD_BYTES):
        raise WrongUsageError(f"a piece must have a multiple of {WORD_BYTES} bytes, not {shape.piece_bytes}")


def page_order(shape: Shape) -> NDArray[np.int64]:
    """Return which page of the pool becomes page 0, 1, 2.. on the device; the same for every layer."""
    return np.random.default_rng(shape.seed).permutation(shape.pages).astype(np.int64)


def pieces(shape: Shape, layer: int) -> NDArray[np.int64]:
    """Return the pieces of one layer's load, in the order of submission.

    Shape ``(pieces, 3)``: offset in the pool, offset in the layer's device buffer, size, all in bytes. Pages that
    happen to be neighbours in the pool are not merged, as SGLang does not merge them.
    """
    return LAYOUTS[shape.layout](shape, layer)


def _contiguous(shape: Shape, layer: int) -> NDArray[np.int64]:
    target = np.arange(0, shape.layer_bytes, shape.piece_bytes or shape.layer_bytes, dtype=np.int64)
    sizes = np.diff(np.append(target, shape.layer_bytes))
    return np.stack([layer * shape.layer_bytes + target, target, sizes], axis=1)


def _layer_first(shape: Shape, layer: int) -> NDArray[np.int64]:
    return _in_order((layer * shape.pages + page_order(shape)) * shape.page_bytes, shape.page_bytes)


def _page_first_direct(shape: Shape, layer: int) -> NDArray[np.int64]:
    return _in_order((page_order(shape) * shape.layers + layer) * shape.page_bytes, shape.page_bytes)


def _page_first(shape: Shape, layer: int) -> NDArray[np.int64]:
    tokens = page_order(shape)[:, None] * shape.page_tokens + np.arange(shape.page_tokens)
    return _in_order((tokens.reshape(-1) * shape.layers + layer) * shape.token_bytes, shape.token_bytes)


def _in_order(sources: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Put equal pieces one behind the other on the device."""
    targets = np.arange(len(sources), dtype=np.int64) * size
    return np.stack([sources, targets, np.full(len(sources), size, dtype=np.int64)], axis=1)


LAYOUTS: dict[str, Callable[[Shape, int], NDArray[np.int64]]] = {
    "contiguous": _contiguous,
    "layer-first": _layer_first,
    "page-first": _page_first,
    "page-first-direct": _page_first_direct,
}
"""The layouts of the host pool, each with the function that lists a layer's pieces."""


def arranged(pool: NDArray[np.uint8], shape: Shape, layer: int) -> NDArray[np.uint8]:
    """Return the bytes that a correct load of ``layer`` leaves on the device, read from ``pool`` by its axes.

    It does not go through the piece list, so that a wrong list cannot confirm itself.
    """
    pages, tokens, token = shape.pages, shape.page_tokens, shape.token_bytes
    paged: NDArray[np.uint8]
    if shape.layout == "contiguous":
        return pool[layer * shape.layer_bytes : (layer + 1) * shape.layer_bytes]
    if shape.layout == "layer-first":
        paged = pool.reshape(shape.layers, pages, -1)[layer]
    elif shape.layout == "page-first":
        paged = pool.reshape(pages, tokens, shape.layers, token)[:, :, layer]
    else:
        paged = pool.reshape(pages, shape.layers, -1)[:, layer]
    paged = paged[page_order(shape)]
    return paged.reshape(-1)


def ideal_ns(load_ns: Sequence[float], compute_ns: Sequence[float]) -> float:
    """Return the shortest makespan of loading, then computing, layer by layer in this order: a two-stage flow shop."""
    loads, computes = np.asarray(load_ns, dtype=float), np.asarray(compute_ns, dtype=float)
    return float(np.max(np.cumsum(loads) + np.cumsum(computes[::-1])[::-1]))


@dataclass(frozen=True)
class Plan:
    """What a run will move and the best it can do over a link of ``link_bytes_per_s``; times in ns, sizes in bytes."""

    shape: Shape
    pieces_per_layer: int
    smallest_piece_bytes: int
    largest_piece_bytes: int
    link_bytes_per_s: int
    load_ns: int
    compute_ns: int
    ideal_ns: int
    serial_ns: int


def make_plan(shape: Shape, compute_ratio: float, link_gbps: float) -> Plan:
    """Plan a run: count the pieces of a layer and time an undisturbed forward at ``link_gbps`` (10^9 bytes/s)."""
    check_shape(shape)
    sizes = pieces(shape, 0)[:, 2]
    load = shape.layer_bytes / link_gbps
    loads, computes = [load] * shape.layers, [load * compute_ratio] * shape.layers
    return Plan(
        shape=shape,
        pieces_per_layer=len(sizes),
        smallest_piece_bytes=int(sizes.min()),
        largest_piece_bytes=int(sizes.max()),
        link_bytes_per_s=round(link_gbps * _GIGA),
        load_ns=round(load),
        compute_ns=round(load * compute_ratio),
        ideal_ns=round(ideal_ns(loads, computes)),
        serial_ns=round(sum(loads) + sum(computes)),
    )


def plan_json(plan: Plan) -> dict[str, Any]:
    """Return the plan as plain values: sizes in bytes, times in ns, the rate in bytes per second."""
    shape = plan.shape
    return {
        "layers": shape.layers,
        "layer_bytes": shape.layer_bytes,
        "forward_bytes": shape.pool_bytes,
        "layout": shape.layout,
        "pages_per_layer": None if shape.layout == "contiguous" else shape.pages,
        "pieces_per_layer": plan.pieces_per_layer,
        "pieces_per_forward": plan.pieces_per_layer * shape.layers,
        "smallest_piece_bytes": plan.smallest_piece_bytes,
        "largest_piece_bytes": plan.largest_piece_bytes,
        "link_bytes_per_s": plan.link_bytes_per_s,
        "load_ns": plan.load_ns,
        "compute_ns": plan.compute_ns,
        "ideal_ns": plan.ideal_ns,
        "serial_ns": plan.serial_ns,
    }


def plan_text(plan: Plan) -> str:
    """Return the plan as lines for people."""
    shape = plan.shape
    size = _size_text(plan.largest_piece_bytes)
    if plan.smallest_piece_bytes != plan.largest_piece_bytes:
        size = f"{_size_text(plan.smallest_piece_bytes)} to {size}"
    paging = "" if shape.layout == "contiguous" else f", {shape.pages:,} shuffled pages of {shape.page_tokens} tokens"
    return "\n".join(
        [
            f"{shape.layers} layer{'s' if shape.layers > 1 else ''} of {_size_text(shape.layer_bytes)}, "
            f"layout {shape.layout}{paging}",
            f"pieces: {plan.pieces_per_layer:,} per layer, {plan.pieces_per_layer * shape.layers:,} per forward, "
            f"of {size} each",
            f"at {plan.link_bytes_per_s / _GIGA:.1f} GB/s: load {plan.load_ns / 1e6:.3f} ms and compute "
            f"{plan.compute_ns / 1e6:.3f} ms per layer",
            f"ideal makespan {plan.ideal_ns / 1e6:.3f} ms, without overlap {plan.serial_ns / 1e6:.3f} ms",
        ]
    )


def _size_text(n_bytes: int) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if n_bytes >= unit:
            return f"{n_bytes / unit:.4g} {name}"
    return f"{n_bytes} B"
