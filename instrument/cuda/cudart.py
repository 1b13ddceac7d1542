"""The CUDA runtime that PyTorch has loaded, called directly.

One call here is one call in a trace: PyTorch's own copies and allocations add queries, caching and bookkeeping that
would stand beside what the workload does on purpose. Declarations follow ``cuda_runtime_api.h``.
"""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from instrument.errors import InstrumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

HOST_TO_DEVICE = 1
"""``cudaMemcpyHostToDevice``."""

DEVICE_TO_HOST = 2
"""``cudaMemcpyDeviceToHost``."""

_ACCESS_IN_STREAM_ORDER = 1
_FIRST_BATCH_VERSION = 12080
_BATCH_WITHOUT_FAIL_INDEX = 13000


class _CopyAttributes(ctypes.Structure):
    """``cudaMemcpyAttributes``: access order, hints for source and destination (type, id), flags."""

    _fields_ = (
        ("source_access_order", ctypes.c_int),
        ("source_hint", ctypes.c_int * 2),
        ("target_hint", ctypes.c_int * 2),
        ("flags", ctypes.c_uint),
    )


@cache
def runtime() -> ctypes.CDLL:
    """Return the CUDA runtime library of this process; PyTorch must be imported and its CUDA part started.

    Raises `InstrumentError` where no such library is loaded.
    """
    mapped = Path("/proc/self/maps").read_text()
    found = re.search(r"(/\S*/libcudart[-.\w]*\.so[.\w]*)", mapped)
    if found is None:
        raise InstrumentError(
            "PyTorch has loaded no libcudart.so: install a PyTorch built for CUDA (pip install torch)"
        )
    library = ctypes.CDLL(found[1])
    library.cudaGetErrorString.restype = ctypes.c_char_p
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    library.cudaMemcpyAsync.argtypes = (pointer, pointer, size, ctypes.c_int, pointer)
    library.cudaMemcpyPeerAsync.argtypes = (pointer, ctypes.c_int, pointer, ctypes.c_int, size, pointer)
    library.cudaHostRegister.argtypes = (pointer, size, ctypes.c_uint)
    library.cudaHostUnregister.argtypes = (pointer,)
    library.cudaMalloc.argtypes = (ctypes.POINTER(pointer), size)
    library.cudaFree.argtypes = (pointer,)
    return library


def check(code: int, what: str) -> None:
    """Raise `InstrumentError` when a call of the runtime did not return success."""
    if code:
        runtime().cudaGetLastError()
        text = runtime().cudaGetErrorString(code)
        raise InstrumentError(f"{what} failed with CUDA error {code}: {text.decode()}")


def copy_async(target: int, source: int, n_bytes: int, kind: int, stream: int) -> None:
    """Submit one copy between addresses on a stream (its handle)."""
    check(runtime().cudaMemcpyAsync(target, source, n_bytes, kind, stream), "cudaMemcpyAsync")


def allocate_and_free(n_bytes: int) -> None:
    """Allocate device memory and free it at once: the free waits for the device."""
    address = ctypes.c_void_p()
    check(runtime().cudaMalloc(ctypes.byref(address), n_bytes), "cudaMalloc")
    check(runtime().cudaFree(address), "cudaFree")


def register(address: int, n_bytes: int) -> None:
    """Pin memory that exists already, so that the device can reach it."""
    check(runtime().cudaHostRegister(address, n_bytes, 0), f"registering {n_bytes} bytes of host memory")


def unregister(address: int) -> None:
    """Undo `register`."""
    check(runtime().cudaHostUnregister(address), "unregistering the host pool")


def pci_address(device: int) -> str:
    """Return the device's place on the PCI bus as sysfs writes it, such as ``0000:1b:00.0``."""
    text = ctypes.create_string_buffer(32)
    check(runtime().cudaDeviceGetPCIBusId(text, len(text), device), "cudaDeviceGetPCIBusId")
    return text.value.decode().lower()


def batch_copy(
    sources: NDArray[np.int64], targets: NDArray[np.int64], sizes: NDArray[np.int64]
) -> Callable[[int], None]:
    """Return a function that submits all these copies (addresses, bytes) to a stream in one ``cudaMemcpyBatchAsync``.

    The arrays (int64, one element per copy) are laid out for the call once, so that a submission costs the call alone.
    Raises `InstrumentError` where the runtime is too old for it.
    """
    version = ctypes.c_int()
    check(runtime().cudaRuntimeGetVersion(ctypes.byref(version)), "cudaRuntimeGetVersion")
    if version.value < _FIRST_BATCH_VERSION:
        raise InstrumentError(
            "cudaMemcpyBatchAsync came with CUDA 12.8: install a newer PyTorch, or use --mover copy-engine"
        )
    kept = [np.ascontiguousarray(column, dtype=np.uint64) for column in (targets, sources, sizes)]
    attributes = _CopyAttributes(source_access_order=_ACCESS_IN_STREAM_ORDER)
    first_index = ctypes.c_size_t(0)
    failed = ctypes.c_size_t()
    call = runtime().cudaMemcpyBatchAsync

    def submit(stream: int) -> None:
        arguments: list[Any] = [ctypes.c_void_p(column.ctypes.data) for column in kept]
        arguments += [ctypes.c_size_t(len(kept[0])), ctypes.byref(attributes), ctypes.byref(first_index)]
        arguments += [ctypes.c_size_t(1)]
        if version.value < _BATCH_WITHOUT_FAIL_INDEX:
            arguments.append(ctypes.byref(failed))
        check(call(*arguments, ctypes.c_void_p(stream)), "cudaMemcpyBatchAsync")

    return submit
