"""Reads what a module defines from its source, without importing it.

Standard library only, because it also runs in the profiled program's own Python before the program starts.
"""

from __future__ import annotations

import ast
import importlib.machinery
import pkgutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

FunctionNode: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


class NoSuchModuleError(Exception):
    """No finder knows the module; ``name`` is the first part that is missing, ``siblings`` what is there instead."""

    def __init__(self, name: str, siblings: list[str]) -> None:
        super().__init__(name)
        self.name = name
        self.siblings = siblings


@dataclass
class Outline:
    """What a module defines: ``functions`` (dotted name to parameters), ``classes`` (dotted name to bases), and the
    ``others`` that only an import could tell about. ``complete`` is False when more names may appear at import."""

    functions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    classes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    others: set[str] = field(default_factory=set)
    complete: bool = True


def find_source(module: str, search_path: Sequence[str] | None = None) -> Path | None:
    """Return the source file of a module, or None when it has none (a compiled or a namespace package).

    Looks part by part and imports nothing, packages neither; ``search_path`` replaces ``sys.path``. Raises
    NoSuchModuleError.
    """
    parts = module.split(".")
    locations = search_path
    spec = None
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        spec = _find(name, locations)
        if spec is None:
            names = [info.name for info in pkgutil.iter_modules(locations)]
            raise NoSuchModuleError(name, names)
        locations = list(spec.submodule_search_locations or ())
    origin = spec.origin if spec is not None else None
    return Path(origin) if origin and origin.endswith(".py") else None


def _find(name: str, locations: Sequence[str] | None) -> importlib.machinery.ModuleSpec | None:
    if locations is not None:
        # the last part alone, because a namespace package asks for its parent by name, and that is not imported
        return importlib.machinery.PathFinder.find_spec(name.rpartition(".")[2], locations)
    # every finder, because an editable install is known to its own finder only
    for finder in sys.meta_path:
        spec = finder.find_spec(name, None) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def outline(source: str) -> Outline:
    """Return what the source of a module defines. Raises SyntaxError when this Python cannot parse it."""
    found = Outline()
    _collect(ast.parse(source).body, "", found)
    return found


def _collect(body: Iterable[ast.stmt], prefix: str, found: Outline) -> None:
    for node in _flat(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.functions[prefix + _stored(node.name, prefix)] = _parameters(node)
            if not prefix and node.name == "__getattr__":
                found.complete = False
        elif isinstance(node, ast.ClassDef):
            found.classes[prefix + node.name] = tuple(ast.unparse(base) for base in node.bases)
            _collect(node.body, f"{prefix}{node.name}.", found)
        elif isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            found.complete = False
        else:
            found.others.update(prefix + name for name in _bound_names(node))


def _stored(name: str, prefix: str) -> str:
    """Return the name under which Python keeps a function of a class: ``__fill`` of ``Pool`` as ``_Pool__fill``."""
    owner = prefix.rstrip(".").rpartition(".")[2].lstrip("_")
    return f"_{owner}{name}" if owner and name.startswith("__") and not name.endswith("__") else name


def _flat(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body and of the if, try and with blocks in it, which bind names just the same."""
    for node in body:
        yield node
        if isinstance(node, ast.If | ast.Try | ast.With):
            for part in ("body", "handlers", "orelse", "finalbody"):
                for inner in getattr(node, part, []):
                    yield from _flat(inner.body if isinstance(inner, ast.ExceptHandler) else [inner])


def _bound_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield alias.asname or alias.name.split(".")[0]
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            yield from (name.id for name in ast.walk(target) if isinstance(name, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _parameters(node: FunctionNode) -> tuple[str, ...]:
    given = node.args
    every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return tuple(argument.arg for argument in every if argument is not None)
