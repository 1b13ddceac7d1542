"""What a run measures and allocates before its first forward: the link's rate, device buffers, the compute's size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from instrument.cuda.link import PlainCopy, plain_copy
from instrument.cuda.streams import new_stream
from instrument.errors import InstrumentError
from instrument.workload.compute import LayerCompute, Size, calibrate, layer_compute, stopwatch
from instrument.workload.pools import FINITE_BF16_MASK

if TYPE_CHECKING:
    from collections.abc import Callable

    from instrument.workload.options import Options


@dataclass(frozen=True)
class Bench:
    """The link's rate, one device buffer (uint8) per layer, and ``launch(layer)``, which computes a layer."""

    plain: PlainCopy
    buffers: list[torch.Tensor]
    target_ns: int
    size: Size
    launch: Callable[[int], None]
    stream: torch.cuda.Stream


def require_cuda(options: Options) -> None:
    """Raise `InstrumentError` when there are not the GPUs that the run needs."""
    if not torch.cuda.is_available():
        raise InstrumentError("no CUDA device here: add --dry-run to see the plan, or run this on a machine with a GPU")
    if options.inbound_peer and torch.cuda.device_count() < 2:
        raise InstrumentError("--inbound-peer needs a second GPU, and there is one here: leave it out")
    torch.cuda.init()  # type: ignore[no-untyped-call, unused-ignore]
    torch.cuda.set_device(0)
    torch.zeros(1, device="cuda")


def prepare(options: Options) -> Bench:
    """Measure the link, fill the device buffers and size the compute so that it lasts as long as the options ask.

    The load time that compute is a multiple of is that of a plain copy: with the real load as the measure, a fault
    that slows loads would stretch the compute that hides them.
    """
    stream = new_stream()
    plain = plain_copy()
    torch.manual_seed(options.shape.seed)
    buffers = []
    for _ in range(options.shape.layers):
        # the values decide how fast products run (zeros are fastest), so calibration sees what loads will bring
        words = torch.randint(-(2**63), 2**63 - 1, (options.shape.layer_bytes // 8,), device="cuda")
        buffers.append(words.bitwise_and_(FINITE_BF16_MASK).view(torch.uint8))
    compute = layer_compute(buffers)
    target_ns = options.compute_ratio * options.shape.layer_bytes * 1e9 / plain.bytes_per_s
    torch.cuda.synchronize()
    size = calibrate(target_ns, stopwatch(compute, stream))
    launch = _launcher(compute, size, options, stream)
    return Bench(plain, buffers, round(target_ns), size, launch, stream)


def _launcher(compute: LayerCompute, size: Size, options: Options, stream: torch.cuda.Stream) -> Callable[[int], None]:
    """Return the function that launches a layer's compute: kernel by kernel, or as one graph per layer."""
    if options.fault != "graph":
        return lambda layer: compute.launch(layer, size.matmuls, size.rows)
    graphs = []
    for layer in range(options.shape.layers):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            compute.launch(layer, size.matmuls, size.rows)
        graphs.append(graph)
    return lambda layer: graphs[layer].replay()
