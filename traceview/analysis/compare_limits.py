"""Reads the names and shares that a user types for a comparison."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from traceview.analysis.compare_measures import MEASURES
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable


def measure_named(name: str) -> str:
    """Return the measure's full name; the unit at its end may be left out. Raises ``UsageError`` listing the known."""
    for known in (name, f"{name}_ns"):
        if known in MEASURES:
            return known
    raise UsageError(f"{name!r} is no measure", suggestion(name, MEASURES))


def share_of(text: str) -> float:
    """Return the share that ``min:5%`` names; raises ``UsageError`` for anything else."""
    number = text.removeprefix("min:").removesuffix("%")
    try:
        share = float(number) / 100
    except ValueError:
        share = -1.0
    if not text.startswith("min:") or not text.endswith("%") or not 0 <= share < 100:
        raise UsageError(f"{text!r} is no smallest effect", "write it as min:5%")
    return share


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return what the user may have meant, then everything that there is."""
    names = list(known)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{meant}there is: {', '.join(names)}"
