"""Wraps functions with ranges when their modules are imported, in every process below ``attach``.

``site/sitecustomize.py`` loads it once the first of these modules is looked for.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from typing import TYPE_CHECKING, Any

import wrapt

from ..calls import ranged
from ..ranges import Range, SilentRange, named
from .site.sitecustomize import tell
from .wrap_spec import Field, Wrap, argument_reader, parse_text, parse_wrap, written

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from ..calls import Chooser


def register(specs: Sequence[str]) -> None:
    """Have the functions of each ``module:name=text`` wrapped right after their module's import."""
    if isinstance(named("attach"), SilentRange):
        return
    for wrap in map(parse_wrap, specs):
        wrapt.register_post_import_hook(functools.partial(wrap_in, wrap), wrap.module)


def wrap_in(wrap: Wrap, module: ModuleType) -> None:
    """Wrap one function of an imported module; what prevents it is told on stderr, and the program goes on."""
    try:
        parent, attribute, original = wrapt.resolve_path(module, wrap.name)
        replacement = name_calls(original, wrap.text)
    except AttributeError:
        tell(f"{wrap.module} has no {wrap.name}{near(module, wrap.name)}: it runs without '{wrap.text}'")
    except (TypeError, ValueError) as error:
        tell(f"{wrap.module}:{wrap.name} {error}: it runs without '{wrap.text}'")
    else:
        wrapt.apply_patch(parent, attribute, replacement)


def name_calls(function: Any, text: str) -> Any:
    """Return ``function`` (also a staticmethod or classmethod) with a range around each call, its text filled.

    Raises TypeError for what is no function, ValueError for parameters that it does not have.
    """
    plain = getattr(function, "__func__", function)
    if inspect.isclass(plain) or not callable(plain):
        raise TypeError("is not a function: name a function or a method")
    parts = parse_text(text)
    fields = [part for part in parts if isinstance(part, Field)]
    if not fields:
        constant = named("".join(map(str, parts)))
        return _ranged(function, lambda args, kwargs: constant, fixed=constant)
    read = argument_reader(plain, [field.root for field in fields])

    def fill(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Range:
        arguments = read(args, kwargs)
        return named("".join(part if isinstance(part, str) else written(part, arguments) for part in parts))

    return _ranged(function, fill)


class _NamedObject(wrapt.FunctionWrapper):  # type: ignore[misc, type-arg, unused-ignore]
    """Stands for an object that can be called, and has all that it has: ``kernel[grid]``, attributes, its class."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__wrapped__.__reduce_ex__(protocol)


def _ranged(function: Any, choose: Chooser, fixed: Range | None = None) -> Any:
    if inspect.isroutine(function):
        return ranged(function, choose, fixed)

    def call(wrapped: Any, instance: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with choose(args, kwargs):
            return wrapped(*args, **kwargs)

    return _NamedObject(function, call)


def near(module: ModuleType, name: str) -> str:
    """Return the names in ``module`` that come near ``name``, as a clause for a message; empty when none does."""
    owners = [("", module), *((f"{key}.", value) for key, value in vars(module).items() if inspect.isclass(value))]
    known = [
        prefix + key
        for prefix, owner in owners
        for key, value in vars(owner).items()
        if callable(value) and not inspect.isclass(value)
    ]
    close = difflib.get_close_matches(name, known, n=3)
    return f" (near matches: {', '.join(close)})" if close else ""
