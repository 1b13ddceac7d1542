"""What ``--wrap`` may say, and how a range's text is filled from a call."""

from __future__ import annotations

import enum
import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from instrument.attaching.wrap_spec import UNKNOWN, Field, argument_reader, parse_text, parse_wrap, written


class Mode(enum.Enum):
    KERNEL = 1


def fill(text: str, **arguments: Any) -> str:
    return "".join(part if isinstance(part, str) else written(part, arguments) for part in parse_text(text))


def test_a_spec_is_taken_apart_and_put_together_again() -> None:
    spec = "pkg.mod:Pool.load=load layer {layer_id}"
    wrap = parse_wrap(spec)
    assert (wrap.module, wrap.name, wrap.text) == ("pkg.mod", "Pool.load", "load layer {layer_id}")
    assert str(wrap) == spec


@pytest.mark.parametrize(
    "spec", ["pkg.mod", "pkg.mod:f", "pkg.mod:f=", "pkg/mod.py:f=x", ":f=x", "pkg:=x", "pkg:f=a\nb", "pkg..mod:f=x"]
)
def test_a_spec_of_another_form_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match="is not of the form"):
        parse_wrap(spec)


@pytest.mark.parametrize(
    "text", ["{}", "{0}", "{a!r}", "{a:>3}", "{a()}", "{a.b()}", "{a+1}", "{a[b.c]}", "{a.}", "{__import__('os')}"]
)
def test_a_field_is_a_name_with_attributes_and_indexes_only(text: str) -> None:
    with pytest.raises(ValueError, match="is not an argument with plain attributes"):
        parse_wrap(f"pkg:f={text}")


@pytest.mark.parametrize("text", ["{a", "a}", "{a[}"])
def test_unbalanced_braces_are_told(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|is not an argument"):
        parse_text(text)


def test_literal_braces_and_fields() -> None:
    field = Field("self", (".pools", 0, "key", ".id"), number=True)
    *literals, found, end = parse_text("{{x}} {self.pools[0][key].id:number}!")
    assert ("".join(map(str, literals)), found, end) == ("{x} ", field, "!")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3, "3"),
        (np.int64(3), "3"),
        (True, "True"),
        (2.5, "2.5"),
        ("name", "name"),
        (None, "None"),
        (Mode.KERNEL, "KERNEL"),
        (SimpleNamespace, "SimpleNamespace"),
        (np.zeros(4), "ndarray"),
        ([1, 2], "list"),
        ("half \ud800 of a pair, \0", r"half \ud800 of a pair, \0"),
        ("x" * 201, "x" * 197 + "..."),
        ("x" * 200, "x" * 200),
    ],
)
def test_plain_values_are_written_and_others_by_type(value: object, shown: str) -> None:
    assert fill("{a}", a=value) == shown


def test_attributes_indexes_and_keys_are_followed() -> None:
    pool = SimpleNamespace(parts=[{"id": 7}])
    assert fill("pool {self.parts[0][id]}", self=pool) == "pool 7"


@pytest.mark.parametrize("text", ["{self.gone}", "{self.parts[9]}", "{self.parts[key]}", "{other}", "{self.broken}"])
def test_what_is_not_there_is_a_question_mark(text: str) -> None:
    class Pool:
        parts = (1,)

        @property
        def broken(self) -> int:
            raise RuntimeError

    assert fill(text, self=Pool()) == UNKNOWN


@pytest.mark.parametrize(
    ("value", "number"),
    [("model.layers.3.mlp.up_proj.", "3"), ("h2.layers.11", "11"), ("block 5", "5"), ("lm_head.", UNKNOWN), (8, "8")],
)
def test_the_first_number_that_stands_by_itself(value: object, number: str) -> None:
    assert fill("{a:number}", a=value) == number


def load(self: object, layer_id: int, *sizes: int, io: str = "kernel", **more: int) -> None:
    pass


@pytest.mark.parametrize(
    ("args", "kwargs", "values"),
    [
        (("s", 3), {}, {"layer_id": 3, "io": "kernel", "sizes": (), "more": {}}),
        (("s",), {"layer_id": 4, "io": "direct"}, {"layer_id": 4, "io": "direct", "sizes": (), "more": {}}),
        (("s", 5, 6, 7), {"other": 1}, {"layer_id": 5, "io": "kernel", "sizes": (6, 7), "more": {"other": 1}}),
        (("s",), {}, {"io": "kernel", "sizes": (), "more": {}}),
    ],
)
def test_arguments_are_found_however_they_are_passed(
    args: tuple[Any, ...], kwargs: dict[str, Any], values: dict[str, Any]
) -> None:
    """The last call lacks an argument: the program will raise, and the reader must not."""
    assert argument_reader(load, ["layer_id", "io", "sizes", "more"])(args, kwargs) == values


def test_a_parameter_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"has no parameter 'layer' \(it has self, layer_id, sizes, io, more\)"):
        argument_reader(load, ["layer"])


def test_a_decorator_that_keeps_the_signature_is_seen_through() -> None:
    @functools.wraps(load)
    def outer(*args: Any, **kwargs: Any) -> None:
        load(*args, **kwargs)

    assert argument_reader(outer, ["layer_id"])(("s", 9), {}) == {"layer_id": 9}
