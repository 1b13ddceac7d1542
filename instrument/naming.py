"""The names of NVTX ranges: the contract between the code that writes them and the code that reads them.

Standard library only: ``instrument`` writes these names inside the profiled process, ``traceview`` reads them back
from the export, and neither needs anything else of the other.
"""

from __future__ import annotations

DOMAIN = "traceview"
"""NVTX domain in which ``instrument`` writes its ranges and marks."""

FORWARD_PATTERN = r"(?i)^forward(?:[ _#=:]*-?\d+)?$"
"""Matches the range around one pass over the layers; a number below zero marks a warm-up."""

LOAD_PATTERN = r"(?i)^load[ _]?layer[ _#=:]*(?P<layer>\d+)$"
"""Matches the range that submits one layer's load; the group ``layer`` is the layer's number."""

COMPUTE_PATTERN = r"(?i)^compute[ _]?layer[ _#=:]*(?P<layer>\d+)$"
"""Matches the range that submits one layer's compute; the group ``layer`` is the layer's number."""

STORAGE_READ = "storage read"
"""Name of the range around reading pages from storage into host memory."""

STAGE = "stage"
"""Name of the range around copying what storage delivered into the registered host pool."""

FACTS_PREFIX = "facts "
"""Start of the text of the mark that carries a capture's facts; JSON follows."""


def forward_name(number: int) -> str:
    """Return the name of the range around forward ``number``; numbers below zero are warm-up."""
    return f"forward {number}"


def load_name(layer: int) -> str:
    """Return the name of the range that submits the load of ``layer``."""
    return f"load layer {layer}"


def compute_name(layer: int) -> str:
    """Return the name of the range that submits the compute of ``layer``."""
    return f"compute layer {layer}"
