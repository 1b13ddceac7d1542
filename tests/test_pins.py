"""The versions that tests run with are those of pyproject.toml: all pinned, the lowest truly lowest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from declared import EXTRAS, declared
from packaging.utils import canonicalize_name
from packaging.version import Version

CI = Path(__file__).parents[1] / ".ci"
NOT_IN_FLOORS = {"torch", "mypy", "ruff"}
"""PyTorch takes gigabytes and was tried by hand; tools of development have no lowest version that a user meets."""


def pins(name: str) -> dict[str, list[Version]]:
    """Return the versions that a list pins each package to, one for each Python that it tells apart."""
    found: dict[str, list[Version]] = {}
    for line in (CI / name).read_text().splitlines():
        pin = re.match(r"([\w.-]+)==([^\s;]+)", line)
        assert pin, line
        found.setdefault(canonicalize_name(pin[1]), []).append(Version(pin[2]))
    return found


DECLARED = {canonicalize_name(one.name): one for extra in ("", *EXTRAS) for one in declared(extra)}


@pytest.mark.parametrize("name", sorted(set(DECLARED) - NOT_IN_FLOORS))
def test_the_lowest_versions_are_the_ones_declared(name: str) -> None:
    """``scipy>=1.11`` is 1.11.1 where 1.11.0 was withdrawn, and never 1.12."""
    (bound,) = DECLARED[name].specifier
    assert bound.operator == ">="
    (lowest,) = pins("floors.txt")[name]
    declared = Version(bound.version).release
    assert lowest.release[: len(declared)] == declared, "bash .ci/pin"


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_what_is_declared_is_pinned_and_allowed(name: str) -> None:
    for version in pins("constraints.txt")[name]:
        assert DECLARED[name].specifier.contains(version), "bash .ci/pin"


def test_what_comes_with_it_is_pinned_too() -> None:
    assert {"contourpy", "dask", "setuptools", "pyparsing"} <= set(pins("constraints.txt"))
    assert len(pins("constraints.txt")) > 2 * len(DECLARED)
