"""The names that are written are the names that are found."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instrument import naming


@given(st.integers(0, 10**6))
def test_a_layer_is_read_back_from_its_load_and_its_compute(layer: int) -> None:
    load = re.search(naming.LOAD_PATTERN, naming.load_name(layer))
    compute = re.search(naming.COMPUTE_PATTERN, naming.compute_name(layer))
    assert load is not None
    assert compute is not None
    assert int(load["layer"]) == int(compute["layer"]) == layer


@given(st.integers(-100, 10**6))
def test_a_forward_is_recognised_by_any_number(number: int) -> None:
    assert re.search(naming.FORWARD_PATTERN, naming.forward_name(number))


@given(st.integers(0, 1000))
def test_no_name_is_taken_for_another_kind(number: int) -> None:
    patterns = (naming.FORWARD_PATTERN, naming.LOAD_PATTERN, naming.COMPUTE_PATTERN)
    names = (naming.forward_name(number), naming.load_name(number), naming.compute_name(number))
    for index, name in enumerate(names):
        assert [bool(re.search(pattern, name)) for pattern in patterns] == [index == other for other in range(3)]
    for other in (naming.STORAGE_READ, naming.STAGE, naming.FACTS_PREFIX + "{}"):
        assert not any(re.search(pattern, other) for pattern in patterns)


@pytest.mark.parametrize("name", ["forward", "Forward 3", "forward_-2", "FORWARD#7", "forward: 1"])
def test_spellings_of_a_forward(name: str) -> None:
    assert re.search(naming.FORWARD_PATTERN, name)


@pytest.mark.parametrize("name", ["load layer 3", "load_layer_3", "LoadLayer3", "load layer=3", "load layer #3"])
def test_spellings_of_a_load(name: str) -> None:
    found = re.search(naming.LOAD_PATTERN, name)
    assert found is not None
    assert found["layer"] == "3"


@pytest.mark.parametrize(
    "name", ["load layer", "load layer -1", "load layer ?", "preload layer 3", "load layer 3 of 8"]
)
def test_what_is_no_load(name: str) -> None:
    assert re.search(naming.LOAD_PATTERN, name) is None
