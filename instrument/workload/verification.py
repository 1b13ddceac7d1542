"""Whether the bytes that arrived on the device are those that were to be loaded."""

from __future__ import annotations

import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from instrument.workload.plan import arranged

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from instrument.workload.plan import Shape


@dataclass(frozen=True)
class LayerCheck:
    """One layer's bytes on the device beside those of the source: checksums (CRC-32), and how many bytes differ."""

    layer: int
    source_crc32: int
    arrived_crc32: int
    wrong_bytes: int

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def check_layers(
    reference: NDArray[np.uint8], shape: Shape, arrived: Callable[[int], NDArray[np.uint8]]
) -> list[LayerCheck]:
    """Compare every layer; ``reference`` is what the pool must hold, ``arrived(layer)`` what the device holds."""
    checks = []
    for layer in range(shape.layers):
        source, found = np.ascontiguousarray(arranged(reference, shape, layer)), arrived(layer)
        wrong = int(np.count_nonzero(source != found))
        checks.append(LayerCheck(layer, zlib.crc32(source.data), zlib.crc32(np.ascontiguousarray(found).data), wrong))
    return checks
