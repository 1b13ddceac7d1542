"""Who moves a layer's pieces to the device: the copy engine piece by piece, in one batch, or a kernel on the SMs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from instrument.cuda import cudart
from instrument.errors import InstrumentError
from instrument.workload.plan import pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from instrument.workload.options import Options
    from instrument.workload.pools import HostPool

    Submit = Callable[[int], None]
    """Submits the load of one layer (its number) to the load stream."""

_TILE_WORDS = 1024
"""8-byte words that one thread block moves at a time: 8 KiB."""

_WORD = 8


@dataclass(frozen=True)
class Route:
    """From where to where: the host pool, one device buffer (uint8) per layer, and the stream that carries the loads.

    ``pause`` is called between the submissions of two pieces, None to do nothing there.
    """

    options: Options
    pool: HostPool
    buffers: list[torch.Tensor]
    stream: torch.cuda.Stream
    pause: Callable[[], None] | None = None


def mover(route: Route) -> Submit:
    """Return the function that submits a layer's load with the mover of the options; it keeps the route alive."""
    return _MOVERS[route.options.mover](route)


def _copy_engine(route: Route) -> Submit:
    calls = [list(zip(*(column.tolist() for column in _addresses(route, n)), strict=True)) for n in _layers(route)]
    stream, copy = route.stream.cuda_stream, cudart.runtime().cudaMemcpyAsync

    def submit(layer: int) -> None:
        pause = route.pause
        for index, (source, target, n_bytes) in enumerate(calls[layer]):
            if index and pause is not None:
                pause()
            if code := copy(target, source, n_bytes, cudart.HOST_TO_DEVICE, stream):
                cudart.check(code, f"the copy of piece {index} of layer {layer}")

    return submit


def _batch(route: Route) -> Submit:
    batches = []
    for layer in _layers(route):
        sources, targets, sizes = _addresses(route, layer)
        batches.append(cudart.batch_copy(sources, targets, sizes))

    def submit(layer: int) -> None:
        batches[layer](route.stream.cuda_stream)

    return submit


def _sm(route: Route) -> Submit:
    try:
        from instrument.cuda.sm_kernel import kv_cache_transfer
    except ImportError:
        raise InstrumentError("the sm mover needs Triton: pip install triton, or use --mover copy-engine") from None
    tables = []
    for layer in _layers(route):
        words = pieces(route.options.shape, layer) // _WORD
        tables.append((torch.from_numpy(words.T.copy()).cuda(), len(words), int(words[:, 2].max())))
    source = route.pool.tensor.view(torch.int64)
    targets = [buffer.view(torch.int64) for buffer in route.buffers]
    grid = (route.options.sm_blocks,)

    def submit(layer: int) -> None:
        table, count, longest = tables[layer]
        with torch.cuda.stream(route.stream):
            kv_cache_transfer[grid](
                source, targets[layer], table[0], table[1], table[2], count, longest, TILE=_TILE_WORDS
            )

    return submit


_MOVERS: dict[str, Callable[[Route], Submit]] = {"copy-engine": _copy_engine, "batch": _batch, "sm": _sm}


def _layers(route: Route) -> range:
    return range(route.options.shape.layers)


def _addresses(route: Route, layer: int) -> tuple[NDArray, NDArray, NDArray]:  # type: ignore[type-arg]
    """Return the addresses to read, the addresses to write, and the sizes of a layer's pieces."""
    source, target, sizes = pieces(route.options.shape, layer).T
    return source + route.pool.address, target + route.buffers[layer].data_ptr(), sizes
