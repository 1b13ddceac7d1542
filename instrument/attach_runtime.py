"""Wraps functions with ranges when their modules are imported, in every process below ``attach``.

``attach_site/sitecustomize.py`` loads it once the first of these modules is looked for.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import os
import sys
from typing import TYPE_CHECKING, Any

from .wrap_spec import Field, Wrap, argument_reader, parse_text, parse_wrap, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    from .ranges import Range


def register(specs: Sequence[str]) -> None:
    """Have the functions of each ``module:name=text`` wrapped right after their module's import."""
    try:
        import wrapt

        from . import ranges
    except ImportError as error:
        tell(f"{error.name} is missing in {sys.executable}, so nothing is named: python -m pip install {error.name}")
        return
    if isinstance(ranges.named("attach"), ranges.SilentRange):
        return
    for wrap in map(parse_wrap, specs):
        wrapt.register_post_import_hook(functools.partial(wrap_in, wrap), wrap.module)


def wrap_in(wrap: Wrap, module: ModuleType) -> None:
    """Wrap one function of an imported module; what prevents it is told on stderr, and the program goes on."""
    import wrapt

    try:
        parent, attribute, original = wrapt.resolve_path(module, wrap.name)
        wrapper = make_wrapper(original, wrap.text)
    except AttributeError:
        tell(f"{wrap.module} has no {wrap.name}{near(module, wrap.name)}: it runs without '{wrap.text}'")
    except (TypeError, ValueError) as error:
        tell(f"{wrap.module}:{wrap.name} {error}: it runs without '{wrap.text}'")
    else:
        wrapt.apply_patch(parent, attribute, wrapt.FunctionWrapper(original, wrapper))


def make_wrapper(original: Any, text: str) -> Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]:
    """Return the wrapper, as wrapt calls it, that puts a range with ``text`` around each call of ``original``.

    The return value, an exception and the kind of function stay as they are. Coroutines and generators get the range
    from their first step to their end, see ``ranges.py``.
    """
    from . import calls

    function = getattr(original, "__func__", original)
    if inspect.isclass(function) or not callable(function):
        raise TypeError("is not a function: name a function or a method")
    carry = calls.carrier(function)
    around = range_filler(function, text)

    def wrapper(wrapped: Any, instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        current = around(args if instance is None else (instance, *args), kwargs)
        if carry is not None:
            return carry(current, wrapped(*args, **kwargs))
        with current:
            return wrapped(*args, **kwargs)

    return wrapper


def range_filler(function: Any, text: str) -> Callable[[tuple[Any, ...], dict[str, Any]], Range]:
    """Return a function from a call's arguments to its range. Raises ValueError for parameters that do not exist."""
    from .ranges import named

    parts = parse_text(text)
    fields = [part for part in parts if isinstance(part, Field)]
    if not fields:
        constant = named("".join(map(str, parts)))
        return lambda args, kwargs: constant
    read = argument_reader(function, [field.root for field in fields])

    def fill(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Range:
        arguments = read(args, kwargs)
        return named("".join(part if isinstance(part, str) else written(part, arguments) for part in parts))

    return fill


def near(module: ModuleType, name: str) -> str:
    """Return the names in ``module`` that come near ``name``, as a clause for a message; empty when none does."""
    owners = [("", module), *((f"{key}.", value) for key, value in vars(module).items() if inspect.isclass(value))]
    known = [prefix + key for prefix, owner in owners for key, value in vars(owner).items() if callable(value)]
    close = difflib.get_close_matches(name, known, n=3)
    return f" (near matches: {', '.join(close)})" if close else ""


def tell(message: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"traceview attach: {message} [process {os.getpid()}]\n")
