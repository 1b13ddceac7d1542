"""Every mover brings every layout's bytes to their places, with a stand-in for the CUDA runtime that copies at once."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from instrument.cuda import cudart  # noqa: E402
from instrument.errors import InstrumentError  # noqa: E402
from instrument.workload import movers  # noqa: E402
from instrument.workload.options import Options  # noqa: E402
from instrument.workload.plan import LAYOUTS, Shape  # noqa: E402
from instrument.workload.pools import HostPool, fill  # noqa: E402
from instrument.workload.verification import check_layers  # noqa: E402

pytestmark = pytest.mark.torch
STREAM = 77


class Runtime:
    """Copies in the host's memory what the CUDA runtime of ``version`` would copy to the device, and keeps count."""

    def __init__(self, version: int = 13000) -> None:
        self.version = version
        self.calls: list[int] = []

    def cudaMemcpyAsync(self, target, source, n_bytes, kind, stream):  # noqa: N802
        assert (kind, stream) == (cudart.HOST_TO_DEVICE, STREAM)
        ctypes.memmove(target, source, n_bytes)
        self.calls.append(1)
        return 0

    def cudaRuntimeGetVersion(self, version):  # noqa: N802
        version._obj.value = self.version
        return 0

    def cudaMemcpyBatchAsync(self, targets, sources, sizes, count, attributes, first, attribute_count, *rest):  # noqa: N802
        assert len(rest) == (1 if self.version >= 13000 else 2)
        assert rest[-1].value == STREAM
        assert (attributes._obj.source_access_order, first._obj.value, attribute_count.value) == (1, 0, 1)
        columns = [
            ctypes.cast(column, ctypes.POINTER(ctypes.c_size_t * count.value)).contents
            for column in (targets, sources, sizes)
        ]
        for target, source, n_bytes in zip(*columns, strict=True):
            ctypes.memmove(target, source, n_bytes)
        self.calls.append(count.value)
        return 0

    def cudaGetLastError(self):  # noqa: N802
        return 0

    def cudaGetErrorString(self, code):  # noqa: N802
        return f"number {code}".encode()


def route(layout: str, mover: str, **changes: object) -> movers.Route:
    shape = Shape(layers=3, layer_bytes=6 * 4 * 32, layout=layout, page_tokens=4, token_bytes=32)
    if layout == "contiguous":
        shape = replace(shape, piece_bytes=320)
    array = np.zeros(shape.pool_bytes, dtype=np.uint8)
    fill(array, seed=1)
    pool = HostPool("pinned", array, torch.from_numpy(array), None)
    buffers = [torch.zeros(shape.layer_bytes, dtype=torch.uint8) for _ in range(shape.layers)]
    options = Options(shape, mover=mover)
    return movers.Route(options, pool, buffers, SimpleNamespace(cuda_stream=STREAM), **changes)


def wrong_bytes(way: movers.Route) -> list[int]:
    checks = check_layers(way.pool.array, way.options.shape, lambda layer: way.buffers[layer].numpy())
    return [check.wrong_bytes for check in checks]


@pytest.mark.parametrize("version", [12080, 13000])
@pytest.mark.parametrize("mover", ["copy-engine", "batch"])
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_byte_of_every_layer_arrives(monkeypatch, layout, mover, version) -> None:
    runtime = Runtime(version)
    monkeypatch.setattr(cudart, "runtime", lambda: runtime)
    way = route(layout, mover)
    submit = movers.mover(way)
    assert min(wrong_bytes(way)) > 0
    for layer in range(3):
        submit(layer)
    assert wrong_bytes(way) == [0, 0, 0]
    pieces_per_layer = {"contiguous": 3, "page-first": 24}.get(layout, 6)
    assert runtime.calls == ([pieces_per_layer] * 3 if mover == "batch" else [1] * 3 * pieces_per_layer)


def test_host_work_lies_between_the_pieces(monkeypatch) -> None:
    runtime = Runtime()
    monkeypatch.setattr(cudart, "runtime", lambda: runtime)
    submitted_before = []
    submit = movers.mover(
        route("layer-first", "copy-engine", pause=lambda: submitted_before.append(len(runtime.calls)))
    )
    submit(0)
    assert submitted_before == [1, 2, 3, 4, 5]


def test_a_refused_copy_says_which_and_why(monkeypatch) -> None:
    runtime = Runtime()
    runtime.cudaMemcpyAsync = lambda *_: 1
    monkeypatch.setattr(cudart, "runtime", lambda: runtime)
    with pytest.raises(InstrumentError, match=r"copy of piece 0 of layer 2 failed with CUDA error 1: number 1"):
        movers.mover(route("page-first", "copy-engine"))(2)


def test_a_batch_needs_a_runtime_that_has_it(monkeypatch) -> None:
    monkeypatch.setattr(cudart, "runtime", lambda: Runtime(12040))
    with pytest.raises(InstrumentError, match=r"CUDA 12\.8.*--mover copy-engine"):
        movers.mover(route("layer-first", "batch"))


def test_a_wrong_byte_is_seen() -> None:
    way = route("page-first", "copy-engine")
    shape = way.options.shape
    from instrument.workload.plan import arranged

    for layer, buffer in enumerate(way.buffers):
        buffer.copy_(torch.from_numpy(arranged(way.pool.array, shape, layer).copy()))
    way.buffers[1][5] += 1
    checks = check_layers(way.pool.array, shape, lambda layer: way.buffers[layer].numpy())
    assert [check.wrong_bytes for check in checks] == [0, 1, 0]
    assert [check.source_crc32 == check.arrived_crc32 for check in checks] == [True, False, True]
