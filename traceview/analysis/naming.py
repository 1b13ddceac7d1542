"""Which NVTX ranges name a forward, a layer's load or a layer's compute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from instrument import naming
from traceview.errors import SelectionError, UsageError

if TYPE_CHECKING:
    from traceview.model import Ints, Trace


NOTHING = "(?!)"
"""An expression that matches no name: says that ranges of a kind have none, without an error."""

_LAYER_DIGITS = 9
_NAMES_SHOWN, _NAME_SHOWN = 8, 40


class Named(IntEnum):
    """What a range's name says about it."""

    NOTHING = 0
    FORWARD = 1
    LOAD = 2
    COMPUTE = 3


@dataclass(frozen=True)
class RangeNames:
    """Regular expressions for the names of ranges; those for layers have a group ``layer``."""

    forward: str = naming.FORWARD_PATTERN
    load: str = naming.LOAD_PATTERN
    compute: str = naming.COMPUTE_PATTERN
    domain: str | None = None
    """only ranges of this NVTX domain count; None: of any"""


@dataclass(frozen=True)
class NamedRanges:
    """For each range of a trace what its name means, and the layer it names or -1."""

    meaning: Ints
    layer: Ints


def read_names(trace: Trace, names: RangeNames) -> NamedRanges:
    """Return the meaning of every range; each distinct name is looked at once.

    Raises ``UsageError`` for an expression that is none, or a layer's without a group ``layer``.
    """
    patterns = {
        Named.LOAD: _layer_pattern("--load-range", names.load),
        Named.COMPUTE: _layer_pattern("--compute-range", names.compute),
        Named.FORWARD: compile_pattern("--forward-range", names.forward),
    }
    meaning = np.zeros(len(trace.names) + 1, dtype=np.int64)
    layer = np.full(len(trace.names) + 1, -1, dtype=np.int64)
    for index in np.unique(trace.ranges.name).tolist():
        for named, pattern in patterns.items():
            found = pattern.search(trace.names[index])
            if not found:
                continue
            if named is not Named.FORWARD:
                number = found.group("layer")
                if number is None or not number.isdecimal() or len(number) > _LAYER_DIGITS:
                    continue
                layer[index] = int(number)
            meaning[index] = named
            break
    of_range = meaning[trace.ranges.name]
    _check_matches(trace, names, of_range)
    if names.domain is not None:
        domains = [index for index, text in enumerate(trace.names) if text == names.domain]
        if not np.isin(trace.ranges.domain, domains).any():
            there = {trace.names[index] for index in np.unique(trace.ranges.domain).tolist() if index >= 0}
            raise SelectionError(f"no range in the domain {names.domain}", f"there is: {_listed(sorted(there))}")
        of_range = np.where(np.isin(trace.ranges.domain, domains), of_range, int(Named.NOTHING))
    return NamedRanges(of_range, np.where(of_range > Named.FORWARD, layer[trace.ranges.name], -1))


def _check_matches(trace: Trace, names: RangeNames, of_range: Ints) -> None:
    """Raise ``SelectionError`` for an expression that was given and matches no range: it would be ignored silently."""
    usual = RangeNames()
    given = (
        ("--forward-range", names.forward, usual.forward, Named.FORWARD),
        ("--load-range", names.load, usual.load, Named.LOAD),
        ("--compute-range", names.compute, usual.compute, Named.COMPUTE),
    )
    for option, expression, default, named in given:
        if expression not in (default, NOTHING) and not (of_range == named).any():
            index, count = np.unique(trace.ranges.name, return_counts=True)
            often = [trace.names[one] for one in index[np.argsort(-count, kind="stable")].tolist()]
            raise SelectionError(f"{option} {expression} matches no range", f"there is: {_listed(often)}")


def _listed(names: list[str]) -> str:
    """Return the first of some names for a message, cut to a readable length."""
    shown = ", ".join(repr(name[:_NAME_SHOWN]) for name in names[:_NAMES_SHOWN])
    return f"{shown}, and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else shown or "none"


def compile_pattern(option: str, expression: str) -> re.Pattern[str]:
    """Return a compiled expression; raises ``UsageError`` naming the option where it is none."""
    try:
        return re.compile(expression)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{option} is no regular expression: {error}", r"e.g. '(?i)^forward \d+$'") from None


def _layer_pattern(option: str, expression: str) -> re.Pattern[str]:
    pattern = compile_pattern(option, expression)
    if expression != NOTHING and "layer" not in pattern.groupindex:
        raise UsageError(f"{option} has no group named layer", r"e.g. '^load (?P<layer>\d+)$'")
    return pattern
