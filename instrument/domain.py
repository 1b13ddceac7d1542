"""Opens the NVTX domain that every range and mark of this package is written to."""

from __future__ import annotations

import functools
import os
import warnings
from typing import Any

import nvtx

# relative imports here and in what attach loads: there the package goes by another name
from .naming import DOMAIN

INJECTION_VARIABLE = "NVTX_INJECTION64_PATH"
"""A profiler that wants NVTX events sets this environment variable in the processes it starts."""


def is_live(domain: Any) -> bool:
    """Tell whether what is written to ``domain`` reaches a profiler; the ``nvtx`` package's stand-in has no handle."""
    return hasattr(domain, "handle")


def profiler_attached() -> bool:
    """Tell whether a profiler that takes NVTX events started this process."""
    return bool(os.environ.get(INJECTION_VARIABLE))


@functools.lru_cache(maxsize=1)
def traceview_domain() -> Any:
    """Return the ``nvtx.Domain`` of this package, or the ``nvtx`` package's stand-in when nobody listens."""
    domain = nvtx.get_domain(DOMAIN)
    if is_live(domain) or not profiler_attached() or not nvtx.enabled():
        return domain
    return _insist(domain)


def _insist(stand_in: Any) -> Any:
    """Return a real domain although the profiler answered no when asked whether it listens.

    ``nvtx`` 0.2.12 and later ask through an NVTX extension that older Nsight Systems (2023.4 among them) lack; these
    take every range nevertheless, and without this a whole capture would be empty.
    """
    try:
        from nvtx._lib.lib import Domain, DomainHandle

        domain = object.__new__(Domain)
        domain.handle = DomainHandle(DOMAIN)
        domain.__init__(DOMAIN)
    except (ImportError, AttributeError, TypeError) as error:
        warnings.warn(
            f"the nvtx package finds no listener in this profiler ({error}), so no range will be written: "
            "use Nsight Systems 2024.6 or later",
            RuntimeWarning,
            stacklevel=4,
        )
        return stand_in
    return domain
