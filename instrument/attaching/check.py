"""Checks before the program starts that every function to wrap is there, from the source and without importing it.

Runs in the program's own Python (``site/sitecustomize.py`` loads it there), hence standard library only.
"""

from __future__ import annotations

import difflib
import importlib.util
import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .source_outline import NoSuchModuleError, Outline, find_source, outline
from .wrap_spec import Field, Wrap, parse_text, parse_wrap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NEEDED = ("nvtx", "wrapt")
"""What the program's Python must have, for the ranges to be written."""


@dataclass(frozen=True)
class Finding:
    """What the source says about one wrap: ``error`` when it cannot work, ``note`` when only the import can tell."""

    error: str | None = None
    note: str | None = None


def check_wrap(wrap: Wrap, search_path: Sequence[str] | None = None) -> Finding:
    """Say whether the function and the arguments that ``wrap`` names exist; near matches when not."""
    try:
        path = find_source(wrap.module, search_path)
        found = None if path is None else outline(path.read_text(encoding="utf-8"))
    except NoSuchModuleError as missing:
        if wrap.module in sys.modules:
            return Finding(note=f"{wrap.module} is made by another module, so {wrap.name} is not checked")
        return Finding(error=f"there is no module {missing.name}{_near(missing.name, missing.siblings)}")
    except (OSError, SyntaxError, ValueError) as error:
        return Finding(note=f"the source of {wrap.module} cannot be read ({error}), so {wrap.name} is not checked")
    if found is None:
        return Finding(note=f"{wrap.module} has no Python source, so {wrap.name} is not checked")
    owner = _resolve(wrap.name, found)
    if owner in found.functions:
        return _check_fields(wrap, found.functions[owner])
    return _explain_absence(wrap, found)


def _resolve(name: str, found: Outline) -> str:
    """Return the name under which the module itself defines ``name``, following bases that it defines too."""
    if name in found.functions or "." not in name:
        return name
    owner, method = name.rsplit(".", 1)
    for base in found.classes.get(owner, ()):
        inherited = _resolve(f"{base}.{method}", found) if base != owner else name
        if inherited in found.functions:
            return inherited
    return name


def _check_fields(wrap: Wrap, parameters: Sequence[str]) -> Finding:
    for part in parse_text(wrap.text):
        if isinstance(part, Field) and part.root not in parameters:
            known = ", ".join(parameters) or "none"
            return Finding(error=f"{wrap.module}:{wrap.name} has no parameter '{part.root}' (it has {known})")
    return Finding()


def _explain_absence(wrap: Wrap, found: Outline) -> Finding:
    where = f"{wrap.module}:{wrap.name}"
    if wrap.name in found.classes:
        methods = [name for name in found.functions if name.startswith(f"{wrap.name}.")]
        listed = f": {', '.join(methods[:5])}" if methods else ""
        return Finding(error=f"{where} is a class, so name one of its methods{listed}")
    near = _near(wrap.name, found.functions)
    if _decided(wrap.name, found):
        return Finding(error=f"{wrap.module} has no {wrap.name}{near or _listed(found.functions)}")
    return Finding(note=f"only its import can tell whether {wrap.module} has {wrap.name}{near}")


def _decided(name: str, found: Outline) -> bool:
    """Tell whether the source alone shows that there is no ``name``: nothing imported or inherited could supply it."""
    first = name.split(".")[0]
    if name in found.others or first in found.others or not (found.complete or first in found.classes):
        return False
    owner = name.rpartition(".")[0]
    return owner not in found.classes or not _inherits_from_elsewhere(owner, found)


def _inherits_from_elsewhere(owner: str, found: Outline) -> bool:
    for base in found.classes[owner]:
        if base == "object":
            continue
        if base not in found.classes or (base != owner and _inherits_from_elsewhere(base, found)):
            return True
    return False


def _listed(known: Iterable[str]) -> str:
    """Return the first few names that a user may mean, where none comes near; empty where there is none."""
    public = [name for name in known if not any(part.startswith("_") for part in name.split("."))]
    return f"; it has {', '.join(public[:5])}{', ..' * (len(public) > 5)}" if public else ""


def _near(name: str, known: Iterable[str]) -> str:
    last = name.rpartition(".")[2]
    choices = list(known)
    ends: dict[str, list[str]] = {}
    for choice in choices:
        ends.setdefault(choice.rpartition(".")[2], []).append(choice)
    close = difflib.get_close_matches(name, choices, n=3)
    for end in difflib.get_close_matches(last, ends, n=3):
        close += [choice for choice in ends[end] if choice not in close]
    return f"; near matches: {', '.join(close[:5])}" if close else ""


def main() -> None:
    """Read wraps from stdin and print the findings: what ``attach`` runs in the program's Python.

    Both are JSON: {first_path, wraps: [module:name=text]} and {missing: [package], errors: [text], notes: [text]}.
    """
    request = json.load(sys.stdin)
    # what Python itself does for a script (its folder) and for -m (the current folder)
    sys.path[:1] = [] if request["first_path"] is None else [request["first_path"]]
    findings = [check_wrap(parse_wrap(spec)) for spec in request["wraps"]]
    errors = dict.fromkeys(finding.error for finding in findings if finding.error)
    answer = {
        "missing": [name for name in NEEDED if importlib.util.find_spec(name) is None],
        "errors": list(errors),
        "notes": [finding.note for finding in findings if finding.note],
    }
    json.dump(answer, sys.stdout)
