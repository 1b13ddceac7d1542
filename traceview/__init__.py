"""Tells from an Nsight Systems capture whether layer-by-layer loading hides behind compute, and if not, why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceview.reading import read

__all__ = ["__version__", "read"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import numpy and the reader only when somebody reads a trace, so that ``--help`` stays quick."""
    if name == "read":
        from traceview.reading import read

        return read
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
