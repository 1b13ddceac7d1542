"""Reads a budget: limits on measures and forbidden findings, with other limits for files that a glob names.

::

    [limits]
    makespan_ms = "<= 12.5"
    pipeline_efficiency = ">= 0.95"
    accidental_syncs = "== 0"
    findings = ["!pageable_source", "!high"]

    [files."traces/offload_*.sqlite"]
    makespan_ms = "<= 40"
    findings = []

A file's own limits replace those of the same key; its ``findings`` replace the list. Of several globs that match, the
later one wins.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from traceview.analysis.advice import ADVICE
from traceview.analysis.budget_quantities import KNOWN_KEYS, LIMIT_KEYS
from traceview.analysis.compare_limits import suggestion
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from traceview.analysis.budget_quantities import LimitKey

SEVERITIES = ("high", "medium", "low")
ANY = "any"
OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)\s*")


@dataclass(frozen=True)
class Limit:
    """One line of a budget: a key, how it compares, and the number."""

    key: LimitKey
    sign: str
    bound: float

    def holds(self, value: float) -> bool:
        """Return whether a value in the key's unit is within the limit."""
        return OPERATORS[self.sign](value, self.bound)

    def __str__(self) -> str:
        return f"{self.key.key} {self.sign} {self.bound:.12g}"


@dataclass(frozen=True)
class FindingRule:
    """A finding that must not be there (``!id``, ``!high``, ``!any``) or, without the mark, must be."""

    name: str
    forbidden: bool

    def __str__(self) -> str:
        return f"!{self.name}" if self.forbidden else self.name


@dataclass(frozen=True)
class Rules:
    """What one file has to keep to."""

    limits: tuple[Limit, ...] = ()
    findings: tuple[FindingRule, ...] = ()


DEFAULT_RULES = Rules(findings=(FindingRule("high", forbidden=True),))
"""What holds where nobody wrote a budget."""


@dataclass(frozen=True)
class Budget:
    """A budget file, read."""

    rules: Rules
    files: tuple[tuple[str, Rules, bool], ...] = field(default=())
    """glob, its rules, and whether they say anything of findings"""

    def unmatched(self, paths: Iterable[str | PurePath]) -> tuple[str, ...]:
        """Return the globs that none of the paths matches."""
        given = [PurePath(path) for path in paths]
        return tuple(glob for glob, _, _ in self.files if not any(_matches(path, glob) for path in given))

    def for_path(self, path: str | PurePath) -> Rules:
        """Return the rules for one file; globs match its path as given, its end, or its name."""
        limits = {limit.key.quantity.name: limit for limit in self.rules.limits}
        findings = self.rules.findings
        for glob, rules, has_findings in self.files:
            if _matches(PurePath(path), glob):
                limits |= {limit.key.quantity.name: limit for limit in rules.limits}
                findings = rules.findings if has_findings else findings
        return Rules(tuple(limits.values()), findings)


def read_budget(path: Path) -> Budget:
    """Read a budget file; raises ``UsageError`` with the line to write for whatever is not a budget."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "traceview budget TRACE -o budget.toml") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no TOML: {error}", 'write lines such as makespan_ms = "<= 12"') from None
    except RecursionError:
        raise UsageError(f"{path} is nested too deep", 'write lines such as makespan_ms = "<= 12"') from None
    return parse_budget(content, str(path))


def parse_budget(content: Mapping[str, Any], source: str = "the budget") -> Budget:
    """Return a budget from the tables of a budget file; raises ``UsageError`` naming ``source`` and what to write."""
    _only_known(content, ("limits", "files"), source)
    files = _table(content.get("files", {}), f"{source}, files")
    budget = Budget(
        rules=parse_rules(_table(content.get("limits", {}), f"{source}, limits"), source),
        files=tuple(
            (glob, parse_rules(_table(section, f"{source}, {glob}"), source), "findings" in section)
            for glob, section in files.items()
        ),
    )
    if not (budget.rules.limits or budget.rules.findings or budget.files):
        raise UsageError(f"{source} limits nothing", "write it with: traceview budget TRACE -o budget.toml")
    return budget


def parse_rules(section: Mapping[str, Any], source: str = "the budget") -> Rules:
    """Return the rules of one section: conditions by key, and a list of findings; raises ``UsageError`` likewise."""
    limits: dict[str, Limit] = {}
    for key, condition in section.items():
        if key == "findings":
            continue
        if key not in LIMIT_KEYS:
            raise UsageError(f"{source}: {key!r} is no limit", suggestion(key, ("findings", *KNOWN_KEYS)))
        quantity = LIMIT_KEYS[key].quantity.name
        if quantity in limits:
            raise UsageError(f"{source}: {limits[quantity].key.key} and {key} limit the same", "leave one of them out")
        limits[quantity] = _limit(key, condition, source)
    return Rules(tuple(limits.values()), _finding_rules(section.get("findings", []), source))


def _limit(key: str, condition: Any, source: str) -> Limit:
    found = _CONDITION.fullmatch(condition) if isinstance(condition, str) else None
    if not found or not math.isfinite(float(found[2])):
        example = ">= 0.95" if LIMIT_KEYS[key].quantity.kind == "ratio" else "<= 1.5"
        raise UsageError(f"{source}: {key} = {condition!r} is no condition", f'write it as {key} = "{example}"')
    return Limit(LIMIT_KEYS[key], found[1], float(found[2]))


def _finding_rules(entries: Any, source: str) -> tuple[FindingRule, ...]:
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise UsageError(f"{source}: findings is no list of names", 'write it as findings = ["!pageable_source"]')
    known = (*ADVICE, *SEVERITIES, ANY)
    rules = []
    for entry in entries:
        name = entry.removeprefix("!")
        if name not in known:
            raise UsageError(f"{source}: {name!r} is no finding", suggestion(name, known))
        rules.append(FindingRule(name, entry.startswith("!")))
    return tuple(rules)


def _table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} is no table", 'begin it with [limits] or [files."*.sqlite"]')
    return value


def _only_known(content: Iterable[str], known: Sequence[str], source: str) -> None:
    for name in content:
        if name not in known:
            hint = "put it under [limits]" if name in LIMIT_KEYS or name == "findings" else suggestion(name, known)
            raise UsageError(f"{source}: {name!r} is no section", hint)


def _matches(path: PurePath, glob: str) -> bool:
    written = path.as_posix()
    return any(fnmatchcase(text, glob) for text in (written, path.name)) or fnmatchcase(written, f"*/{glob}")
