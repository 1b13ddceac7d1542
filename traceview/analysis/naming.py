"""Which NVTX ranges name a forward, a layer's load or a layer's compute."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from instrument import naming
from traceview.errors import UsageError

if TYPE_CHECKING:
    from traceview.model import Ints, Trace


_LAYER_DIGITS = 9


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
    if names.domain is not None:
        domains = [index for index, text in enumerate(trace.names) if text == names.domain]
        of_range = np.where(np.isin(trace.ranges.domain, domains), of_range, int(Named.NOTHING))
    return NamedRanges(of_range, np.where(of_range > Named.FORWARD, layer[trace.ranges.name], -1))


def compile_pattern(option: str, expression: str) -> re.Pattern[str]:
    """Return a compiled expression; raises ``UsageError`` naming the option where it is none."""
    try:
        return re.compile(expression)
    except re.error as error:
        raise UsageError(f"{option} is no regular expression: {error}", r"e.g. '(?i)^forward \d+$'") from None


def _layer_pattern(option: str, expression: str) -> re.Pattern[str]:
    pattern = compile_pattern(option, expression)
    if "layer" not in pattern.groupindex:
        raise UsageError(f"{option} has no group named layer", r"e.g. '^load (?P<layer>\d+)$'")
    return pattern
