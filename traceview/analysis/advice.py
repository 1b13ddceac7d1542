"""What each finding means and what to do about it, in the user's words."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advice:
    """A finding's sentence and its remedy."""

    message: str
    remedy: str


ADVICE = {
    "pageable_source": Advice(
        "loads copy from pageable memory: the CPU stages every byte and the calling thread waits for it",
        "Allocate the host pool pinned (torch pin_memory, cudaHostAlloc) or register it once with cudaHostRegister.",
    ),
    "remote_numa": Advice(
        "the host buffers lie on another NUMA node than the GPU",
        "Bind the process to the GPU's node before it allocates the pool: numactl --cpunodebind=N --membind=N.",
    ),
    "same_stream": Advice(
        "compute queues behind copies on its own stream",
        "Issue loads and write-backs on streams of their own and let compute wait for an event per layer.",
    ),
    "accidental_sync": Advice(
        "the host synchronises with the device in the middle of the forward, and the queue runs dry",
        "Remove the synchronise call or move it behind the forward's last launch; use events between streams.",
    ),
    "scalar_readback": Advice(
        "a scalar is read back in the middle of the forward (.item(), bool(tensor), .tolist()), and the queue runs dry",
        "Keep the value on the device, or read it after the forward's last launch.",
    ),
    "implicit_sync": Advice(
        "calls block the host without saying so: allocation, registration, synchronous copies",
        "Allocate and register before serving, and use a caching allocator, cudaMallocAsync and asynchronous copies.",
    ),
    "fragmented_copies": Advice(
        "loads are cut into many small copies: each costs host time to submit and a gap on the copy engine",
        "Lay the pool out so that a layer is contiguous (no trace tells whether it is), batch the copies with "
        "cudaMemcpyBatchAsync, or gather them with a kernel.",
    ),
    "late_submission": Advice(
        "loads are submitted too slowly: what moves them waits for the host",
        "Submit all loads before other host work, from a thread of their own, or with fewer calls.",
    ),
    "host_bound": Advice(
        "compute is launched too late: the host is busy with something else",
        "Shorten the host work between launches, or replay the layers as CUDA graphs.",
    ),
    "head_of_line": Advice(
        "a small copy on the compute stream waits in the copy engine's queue behind the load burst",
        "Send small inputs before the burst or through mapped memory, or submit loads layer by layer.",
    ),
    "inbound_contention": Advice(
        "other traffic into the GPU runs on the same link at the same time as the loads",
        "Schedule the other transfers between forwards, or move them to another link.",
    ),
    "duplex_slowdown": Advice(
        "copies out of the GPU run at the same time and slow the loads down, though they use the other direction",
        "Nothing may be wrong; delaying write-backs until the loads are through gains what this costs.",
    ),
    "sm_mover_contention": Advice(
        "a kernel moves the loads and takes multiprocessors and memory bandwidth from compute",
        "Give the mover fewer blocks, or use the copy engine (SGLang: --hicache-io-backend direct).",
    ),
    "low_link_rate": Advice(
        "loads of large pinned copies run well below the rate of the link",
        "Check the link's generation and width under load, the memory's NUMA node, and IOMMU and power settings.",
    ),
    "load_bound": Advice(
        "loading takes longer than computing: the link is the limit, and the pipeline hides what it can",
        "Nothing to mend in the pipeline: load fewer bytes (quantise, keep layers resident) or compute more per load.",
    ),
}
"""By finding id, in the words of MEASURES.md, "Findings"."""

PREFETCH = Advice(
    ADVICE["host_bound"].message,
    "Read from storage before the forward or on a thread of its own, so that the pool is full when loads begin.",
)
"""``host_bound`` where the host reads from storage for most of that time."""

MOVER_BOUND = Advice(
    "loading takes longer than computing: the kernel that moves the loads is the limit",
    "Compare with the copy engine, whose rate the link sets; else load fewer bytes or compute more per load.",
)
"""``load_bound`` where a kernel moves the loads."""
