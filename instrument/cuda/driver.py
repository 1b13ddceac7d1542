"""Asks the CUDA driver, without creating a context, which devices this process uses and which host memory it knows.

Uses ``libcuda.so.1`` through ``ctypes``: it answers for programs with and without PyTorch, numbers the devices as the
program does (``CUDA_VISIBLE_DEVICES`` included), and never initialises CUDA by itself, which would break a later fork.
"""

from __future__ import annotations

import ctypes
import uuid
from typing import Any

from instrument.errors import UnreadableError

SUCCESS, INVALID_VALUE, NOT_INITIALIZED = 0, 1, 3
POINTER_MEMORY_TYPE = 2
MEMORY_TYPE_HOST = 1


def load_driver() -> Any:
    """Return the CUDA driver library. Raises UnreadableError where there is none."""
    try:
        return ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise UnreadableError("this machine has no CUDA driver (libcuda.so.1)") from error


def devices_in_use(driver: Any) -> list[tuple[int, str]]:
    """Return (CUDA ordinal, UUID) of each device on which this process has its primary context, in CUDA's order.

    Raises UnreadableError where the driver does not tell.
    """
    count = ctypes.c_int()
    _check(driver.cuDeviceGetCount(ctypes.byref(count)), "cuDeviceGetCount")
    found = []
    for ordinal in range(count.value):
        device, flags, active = ctypes.c_int(), ctypes.c_uint(), ctypes.c_int()
        _check(driver.cuDeviceGet(ctypes.byref(device), ordinal), "cuDeviceGet")
        state = driver.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active))
        _check(state, "cuDevicePrimaryCtxGetState")
        if active.value:
            found.append((ordinal, _uuid(driver, device)))
    if not found:
        raise UnreadableError("this process has no CUDA context yet: emit the facts after the first CUDA work")
    return found


def is_pinned(driver: Any, address: int) -> bool:
    """Tell whether the driver knows the host memory at ``address`` as page-locked, by allocation or registration."""
    kind = ctypes.c_uint()
    status = driver.cuPointerGetAttribute(ctypes.byref(kind), POINTER_MEMORY_TYPE, ctypes.c_void_p(address))
    if status == INVALID_VALUE:
        return False
    _check(status, "cuPointerGetAttribute")
    return kind.value == MEMORY_TYPE_HOST


def _uuid(driver: Any, device: Any) -> str:
    raw = (ctypes.c_ubyte * 16)()
    _check(driver.cuDeviceGetUuid(ctypes.byref(raw), device), "cuDeviceGetUuid")
    return f"GPU-{uuid.UUID(bytes=bytes(raw))}"


def _check(status: int, call: str) -> None:
    if status == NOT_INITIALIZED:
        raise UnreadableError("this process has not initialised CUDA yet: emit the facts after the first CUDA work")
    if status != SUCCESS:
        raise UnreadableError(f"{call} returned CUDA error {status}")
