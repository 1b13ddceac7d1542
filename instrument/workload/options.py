"""The options of the reference workload, and which of them contradict each other."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from instrument.errors import WrongUsageError
from instrument.workload.plan import Shape, check_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

POOLS = ("pinned", "registered", "pageable")
"""Kinds of host memory: allocated by CUDA, mapped and then registered with CUDA, or left as it is."""

HUGE_PAGES = ("none", "transparent", "reserved")
"""Page sizes of a registered pool: ordinary, advised to be huge, or taken from the reserved huge pages."""

MOVERS = ("copy-engine", "batch", "sm")
"""Who moves the bytes: one copy per piece, one batched copy per layer, or one kernel per layer."""

STORAGE_IO = ("buffered", "direct")
"""How the storage file is read: through the page cache, or past it (``O_DIRECT``)."""

FAULTS = {
    "none": "nothing: the healthy pipeline",
    "same-stream": "loads are put on the compute stream",
    "item": "one number is read back (.item()) after each layer's compute",
    "stream-sync": "the host waits for the compute stream after each layer",
    "device-sync": "the host waits for the whole device after each layer",
    "event-sync": "the host waits for an event after each layer",
    "alloc-free": "device memory is allocated and freed after each layer",
    "small-copy-first": "a small copy before each layer's compute waits behind the loads",
    "late-submission": "host work between the submissions of loads (--late-us)",
    "thread": "loads are submitted from another thread (healthy)",
    "graph": "each layer's compute is a CUDA graph (healthy)",
    "no-names": "no ranges and no facts at all (healthy)",
}
"""What can be done to the pipeline on purpose, each with what it does."""

DEFAULT_LATE_US = 2000
"""Host work between two submissions of the fault ``late-submission``, in microseconds, unless told otherwise."""

DEFAULT_SM_BLOCKS = 32
"""Thread blocks of the ``sm`` mover's kernel unless told otherwise."""


@dataclass(frozen=True)
class Storage:
    """The file that stands for storage: read with ``io``, and staged in a buffer of its own unless not ``staged``."""

    path: str
    io: str = "buffered"
    staged: bool = True


@dataclass(frozen=True)
class Options:
    """Everything that one run of the workload is told; see ``python -m instrument run --help``.

    ``compute_ratio`` is compute time per layer over the time of a plain copy of the layer; ``forwards`` are measured,
    after ``warmup`` others; ``numa`` is None, ``local`` or a node's number.
    """

    shape: Shape
    compute_ratio: float = 1.1
    forwards: int = 3
    warmup: int = 2
    pool: str = "pinned"
    huge_pages: str = "none"
    numa: str | None = None
    mover: str = "copy-engine"
    sm_blocks: int = DEFAULT_SM_BLOCKS
    writeback: bool = False
    inbound_peer: bool = False
    storage: Storage | None = None
    fault: str = "none"
    late_us: int = DEFAULT_LATE_US

    def parameters(self) -> dict[str, Any]:
        """Return the options as plain values; of the storage file the way it is read, not its path."""
        values = asdict(self)
        values.update(values.pop("shape"))
        if self.storage is not None:
            values["storage"] = {"io": self.storage.io, "staged": self.storage.staged}
        return values


def options_from(given: Mapping[str, Any]) -> Options:
    """Build the options from what was typed (None: not typed); raise `WrongUsageError` at the first contradiction."""
    for wrong, message in _contradictions(given):
        if wrong:
            raise WrongUsageError(message)
    typed = {name: value for name, value in given.items() if value is not None}
    shape = Shape(
        layers=typed["layers"],
        layer_bytes=typed["mib_per_layer"] * 2**20,
        piece_bytes=typed["piece_kib"] * 2**10 if "piece_kib" in typed else None,
        **{name: typed[name] for name in ("layout", "page_tokens", "token_bytes", "seed") if name in typed},
    )
    check_shape(shape)
    storage = None
    if "storage" in typed:
        storage = Storage(typed["storage"], typed.get("storage_io", "buffered"), not typed.get("no_stage", False))
    kept = {name: value for name, value in typed.items() if name in Options.__dataclass_fields__}
    return Options(**{**kept, "shape": shape, "storage": storage})


def _contradictions(given: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
    """Yield (does it hold, what to say) for every way in which options can contradict each other."""

    def typed(name: str) -> bool:
        return given.get(name) not in (None, False)

    mover, pool, fault = given.get("mover"), given.get("pool"), given.get("fault")
    paged = typed("layout") and given["layout"] != "contiguous"
    yield (
        (typed("page_tokens") or typed("token_bytes")) and not paged,
        "--page-tokens and --token-bytes need pages: add --layout layer-first, page-first or page-first-direct",
    )
    yield (
        paged and typed("piece_kib"),
        "--piece-kib cuts a layer without pages: leave out --layout, or use --page-tokens instead",
    )
    yield typed("sm_blocks") and mover != "sm", "--sm-blocks is for the kernel that moves bytes: add --mover sm"
    yield (
        mover == "sm" and pool == "pageable",
        "a kernel cannot read pageable memory: use --pool pinned or registered with --mover sm",
    )
    yield typed("huge_pages") and pool != "registered", "--huge-pages is for a mapped pool: add --pool registered"
    yield (
        typed("late_us") and fault != "late-submission",
        "--late-us is host work between submissions: add --fault late-submission",
    )
    numa = given.get("numa")
    yield (
        numa is not None and numa != "local" and not numa.isdecimal(),
        f"--numa takes 'local' or the number of a node, not '{numa}'",
    )
    yield typed("storage_io") and not typed("storage"), "--storage-io needs a file: add --storage FILE"
    yield typed("no_stage") and not typed("storage"), "--no-stage needs a file: add --storage FILE"
    yield typed("json") and not typed("dry_run"), "--json is for --dry-run: a run always ends with a JSON line"
    yield typed("link_gbps") and not typed("dry_run"), "--link-gbps is for --dry-run: a run measures its link"
