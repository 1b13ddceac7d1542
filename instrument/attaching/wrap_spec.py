"""What ``attach --wrap MODULE:NAME=TEXT`` says: which function gets a range, and how the range's text is filled.

Standard library only, because it also runs in the profiled program's own Python before the program starts.
"""

from __future__ import annotations

import enum
import inspect
import numbers
import re
import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

UNKNOWN = "?"
"""Stands in a range's text for what cannot be read from the arguments of a call."""

_SPEC = re.compile(r"(?P<module>\w+(?:\.\w+)*):(?P<name>\w+(?:\.\w+)*)=(?P<text>[^\r\n]+)")
_FIELD = re.compile(r"(?P<root>[A-Za-z_]\w*)(?P<steps>(?:\.[A-Za-z_]\w*|\[\w+\])*)")
_STEP = re.compile(r"\.(?P<attribute>\w+)|\[(?P<index>\w+)\]")
_LONE_NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")


LONGEST_VALUE = 200
"""Characters of an argument that are written out; a profiler keeps every different text to the end."""

_ABSENT = object()
_WRITTEN_AS_THEY_ARE = frozenset({int, float, bool, type(None)})


@dataclass(frozen=True)
class Wrap:
    """A function by module and dotted name in it, and the text of its range with ``{fields}``."""

    module: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.module}:{self.name}={self.text}"


@dataclass(frozen=True)
class Field:
    """A ``{root.attribute[index]}`` of a text: an argument's name and the steps from it; ``number`` picks digits."""

    root: str
    steps: tuple[str | int, ...]
    number: bool


def parse_wrap(spec: str) -> Wrap:
    """Return the parts of ``package.module:Class.method=text {argument}``. Raises ValueError with what is wrong."""
    found = _SPEC.fullmatch(spec)
    if found is None:
        raise ValueError(f"'{spec}' is not of the form package.module:Class.method=text {{argument}}")
    wrap = Wrap(found["module"], found["name"], found["text"])
    parse_text(wrap.text)
    return wrap


def parse_text(text: str) -> tuple[str | Field, ...]:
    """Return the literal parts and the fields of a range's text, in order. Raises ValueError with what is wrong.

    ``{{`` and ``}}`` stand for braces. A field is an argument's name, then attributes and indexes:
    ``{self.pools[0].id}``.
    ``{name:number}`` takes the first number that stands by itself in the value: 3 from ``model.layers.3.mlp``.
    """
    parts: list[str | Field] = []
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise ValueError(f"the text '{text}' cannot be read: {error}") from None
    for literal, field, form, conversion in pieces:
        if literal:
            parts.append(literal)
        if field is not None:
            parts.append(_parse_field(field, form or "", conversion))
    return tuple(parts)


def _parse_field(field: str, form: str, conversion: str | None) -> Field:
    found = _FIELD.fullmatch(field)
    if found is None or conversion or form not in ("", "number"):
        shown = field + (f"!{conversion}" if conversion else "") + (f":{form}" if form else "")
        raise ValueError(
            f"'{{{shown}}}' is not an argument with plain attributes and indexes, "
            "such as {layer_id}, {self.pool.id}, {sizes[0]} or {name:number}"
        )
    steps: list[str | int] = []
    for step in _STEP.finditer(found["steps"]):
        if step["attribute"] is not None:
            steps.append("." + step["attribute"])
        else:
            steps.append(int(step["index"]) if step["index"].isdigit() else step["index"])
    return Field(found["root"], tuple(steps), form == "number")


def written(field: Field, arguments: Mapping[str, Any]) -> str:
    """Return a field's text for the arguments of one call; ``?`` for what is not there. Never raises.

    Only numbers, texts, None, and the names of classes and enum members are written out; of anything else the name of
    its type is, because writing a tensor out would wait for the device.
    """
    try:
        value = arguments[field.root]
        for step in field.steps:
            value = getattr(value, step[1:]) if isinstance(step, str) and step.startswith(".") else value[step]
        return _number(value) if field.number else _plain(value)
    except Exception:
        # a property of the program may raise anything, and naming a range must not change what the program does
        return UNKNOWN


def _plain(value: Any) -> str:
    # the exact types first: nearly every field is a layer's number, and asking an abstract class costs a microsecond
    if type(value) in _WRITTEN_AS_THEY_ARE:
        return str(value)
    if isinstance(value, str):
        # NVTX ends a text at a NUL, and takes no half of a surrogate pair, which names of files may hold
        text = str(value[: LONGEST_VALUE + 1]).encode(errors="backslashreplace").decode().replace("\0", "\\0")
        return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."
    if isinstance(value, float):
        return str(value)
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, numbers.Integral):
        return str(int(value))
    return type(value).__name__


def _number(value: Any) -> str:
    found = _LONE_NUMBER.search(_plain(value))
    return found[0] if found else UNKNOWN


def argument_reader(function: Any, roots: Sequence[str]) -> Callable[[tuple[Any, ...], dict[str, Any]], dict[str, Any]]:
    """Return a function from the positional and keyword arguments of a call to the values of the parameters ``roots``.

    The positional arguments include ``self`` or ``cls``. Parameters that a call leaves out have their default. Raises
    ValueError when ``function`` has no such parameter, or no signature that Python knows.
    """
    parameters = inspect.signature(function).parameters
    missing = [root for root in roots if root not in parameters]
    if missing:
        raise ValueError(f"has no parameter '{missing[0]}' (it has {', '.join(parameters) or 'none'})")
    readers = {root: _reader_of(root, parameters) for root in roots}

    def read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        return {root: value for root, of in readers.items() if (value := of(args, kwargs)) is not _ABSENT}

    return read


def _reader_of(root: str, parameters: Mapping[str, inspect.Parameter]) -> Callable[[Any, dict[str, Any]], Any]:
    """Return what reads one parameter from a call; everything that is the same for every call is settled here."""
    parameter, index = parameters[root], list(parameters).index(root)
    default = _ABSENT if parameter.default is parameter.empty else parameter.default
    if parameter.kind is parameter.VAR_POSITIONAL:
        return lambda args, kwargs: args[index:]
    if parameter.kind is parameter.VAR_KEYWORD:
        return lambda args, kwargs: {key: value for key, value in kwargs.items() if key not in parameters}
    if parameter.kind is parameter.KEYWORD_ONLY:
        return lambda args, kwargs: kwargs.get(root, default)
    return lambda args, kwargs: args[index] if index < len(args) else kwargs.get(root, default)
