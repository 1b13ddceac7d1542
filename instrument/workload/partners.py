"""Transfers beside the loads: write-back in the other direction, and peer copies into the same device."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from instrument.cuda import cudart
from instrument.cuda.streams import elapsed_ns, new_event, new_stream
from instrument.errors import InstrumentError

if TYPE_CHECKING:
    from instrument.cuda.link import PlainCopy
    from instrument.workload.plan import Shape

_ALREADY_ENABLED = 704
"""``cudaErrorPeerAccessAlreadyEnabled``."""


@dataclass(frozen=True)
class Writeback:
    """Copies each layer's buffer back to pinned host memory, on a stream of its own, once its compute is done."""

    stream: torch.cuda.Stream
    buffers: list[torch.Tensor]
    host: torch.Tensor

    def submit(self, layer: int, computed: torch.cuda.Event) -> None:
        """Submit the copy of ``layer``, to start when the event ``computed`` has happened."""
        self.stream.wait_event(computed)
        source = self.buffers[layer]
        place = self.host.data_ptr() + layer * source.numel()
        cudart.copy_async(place, source.data_ptr(), source.numel(), cudart.DEVICE_TO_HOST, self.stream.cuda_stream)


def writeback(shape: Shape, buffers: list[torch.Tensor]) -> Writeback:
    """Prepare the write-back of these layer buffers."""
    host = torch.zeros(shape.pool_bytes, dtype=torch.uint8, pin_memory=True)
    return Writeback(new_stream(), buffers, host)


@dataclass(frozen=True)
class InboundPeer:
    """Peer copies from a second GPU into this one: ``copies`` of one layer's size, submitted together."""

    stream: torch.cuda.Stream
    source: torch.Tensor
    target: torch.Tensor
    copies: int

    def submit(self) -> None:
        """Submit all copies of one forward."""
        for _ in range(self.copies):
            _peer_copy(self.target, self.source, self.stream)

    def as_json(self) -> dict[str, object]:
        """Return how much was copied in each forward, and whether the right bytes arrived."""
        right = torch.equal(self.target.cpu(), self.source.cpu())
        return {"copies": self.copies, "copy_bytes": self.source.numel(), "verified": right}


def inbound_peer(shape: Shape, plain: PlainCopy) -> InboundPeer:
    """Prepare peer copies that last about as long as a forward's loads do at the rate of the plain copy.

    Raises `InstrumentError` where the second GPU cannot reach this one directly.
    """
    if not torch.cuda.can_device_access_peer(0, 1):
        raise InstrumentError("GPU 1 cannot reach GPU 0 directly, so --inbound-peer is unavailable here")
    _enable_peer_access(0, 1)
    _enable_peer_access(1, 0)
    source = torch.randint(256, (shape.layer_bytes,), dtype=torch.uint8, device="cuda:1")
    target = torch.zeros(shape.layer_bytes, dtype=torch.uint8, device="cuda:0")
    torch.cuda.synchronize(1)
    stream = new_stream()
    begin, end = new_event(), new_event()
    _peer_copy(target, source, stream)
    begin.record(stream)
    _peer_copy(target, source, stream)
    end.record(stream)
    stream.synchronize()
    load_ns = shape.pool_bytes * 1e9 / plain.bytes_per_s
    return InboundPeer(stream, source, target, math.ceil(load_ns / elapsed_ns(begin, end)))


def _peer_copy(target: torch.Tensor, source: torch.Tensor, stream: torch.cuda.Stream) -> None:
    addresses = (target.data_ptr(), target.get_device(), source.data_ptr(), source.get_device())
    call = cudart.runtime().cudaMemcpyPeerAsync
    cudart.check(call(*addresses, source.numel(), stream.cuda_stream), "cudaMemcpyPeerAsync")


def _enable_peer_access(device: int, other: int) -> None:
    with torch.cuda.device(device):
        code = cudart.runtime().cudaDeviceEnablePeerAccess(other, 0)
    if code == _ALREADY_ENABLED:
        # otherwise PyTorch would find this harmless answer and report it as its own error
        cudart.runtime().cudaGetLastError()
    else:
        cudart.check(code, f"peer access from GPU {device} to GPU {other}")
