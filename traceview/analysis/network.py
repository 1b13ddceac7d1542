"""RDMA traffic that the NICs counted, as transfers into and out of the devices that are nearest to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from traceview.analysis.transfers import IN, NIC, OUT, Transfers
from traceview.report_links import NicTraffic

if TYPE_CHECKING:
    from traceview.analysis.topology import Topology
    from traceview.model import NicSamples, Trace

CHATTER = 0.1
"""GB/s below which a sample holds nothing that could slow a load: heartbeats, acknowledgements."""

_WAYS = {"receive": IN, "send": OUT}


def measure_network(trace: Trace) -> tuple[NicTraffic, ...]:
    """Return what each NIC port received and sent by RDMA in the whole trace."""
    found = []
    for one in trace.nics:
        samples = one.samples
        rate = samples.value / (samples.end - samples.start)
        busy = rate >= CHATTER
        length = int((samples.end - samples.start)[busy].sum())
        found.append(
            NicTraffic(
                nic=one.nic,
                port=one.port,
                direction=one.direction,
                n_bytes=int(samples.value.sum()),
                busy_ns=length,
                rate=float(samples.value[busy].sum() / length) if length else None,
                peak_rate=float(rate.max(initial=0.0)),
            )
        )
    return tuple(found)


def rdma_transfers(trace: Trace, topology: Topology | None) -> tuple[tuple[int, Transfers], ...]:
    """Return the samples with real RDMA traffic as transfers, each with the device that it should belong to.

    Those are the devices that the topology puts nearest to the NIC; without a topology it can be any.
    """
    several = len({one.nic for one in trace.nics}) > 1
    found = []
    for one in trace.nics:
        nearest = topology.nearest_gpus(one.nic) if topology else ()
        transfers = _transfers(one, f", {one.nic}" if several else "")
        if len(transfers.start):
            devices = [device for device in trace.capture.devices if not nearest or device in nearest]
            found += [(device, transfers) for device in devices]
    return tuple(found)


def _transfers(one: NicSamples, suffix: str) -> Transfers:
    samples = one.samples
    kept = np.flatnonzero(samples.value >= CHATTER * (samples.end - samples.start))
    direction = _WAYS[one.direction]
    return Transfers(
        name=f"rdma {direction}{suffix}",
        direction=direction,
        mover=NIC,
        memory="device",
        start=samples.start[kept],
        end=samples.end[kept],
        n_bytes=samples.value[kept],
        nic=one.nic,
    )
