"""Which findings appeared, went or stayed from one side of a comparison to the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traceview.report import Finding


@dataclass(frozen=True)
class FindingChange:
    """A finding and what it costs on each side, None where it is not there."""

    id: str
    change: str
    """``appeared``, ``went`` or ``stayed``"""
    severity: str
    base_cost_ns: int | None
    new_cost_ns: int | None
    message: str


def finding_changes(base: Sequence[Sequence[Finding]], new: Sequence[Sequence[Finding]]) -> tuple[FindingChange, ...]:
    """Return every finding of either side; a side has it when at least half of its files do."""
    sides = [_findings_of(files) for files in (base, new)]
    changes = []
    for name in dict.fromkeys((*sides[1], *sides[0])):
        before, after = (side.get(name) for side in sides)
        latest = after or before
        if latest is None:
            continue
        change = "stayed" if before and after else "appeared" if after else "went"
        costs = before.cost_ns if before else None, after.cost_ns if after else None
        changes.append(FindingChange(name, change, latest.severity, costs[0], costs[1], latest.message))
    order = ("appeared", "went", "stayed")
    return tuple(sorted(changes, key=lambda one: order.index(one.change)))


def _findings_of(files: Sequence[Sequence[Finding]]) -> dict[str, Finding]:
    """Return the findings that at least half of the files have, each with its median cost's file."""
    found: dict[str, list[Finding]] = {}
    for findings in files:
        for finding in findings:
            found.setdefault(finding.id, []).append(finding)
    kept = {name: same for name, same in found.items() if 2 * len(same) >= len(files)}
    return {name: sorted(same, key=lambda one: one.cost_ns)[(len(same) - 1) // 2] for name, same in kept.items()}
