"""The table of licences says what the installed packages say, and none of them asks much of a user."""

from __future__ import annotations

import pytest
from declared import declared
from licences import ALLOWED, USERS_EXTRAS, parts, rows, rows_written
from packaging.utils import canonicalize_name

INSTALLED = {row.package: row for row in rows()}
WRITTEN = {row.package: row for row in rows_written()}


@pytest.mark.pinned
def test_everything_that_users_get_is_listed_with_its_licence() -> None:
    assert len(INSTALLED) > len(declared())
    listed = {name: WRITTEN.get(name) for name in INSTALLED}
    assert listed == INSTALLED, "look at what is new, then: python tests/licences.py --write"


def test_what_is_declared_is_listed_even_where_it_is_not_installed() -> None:
    asked_for = [*declared(), *(one for extra in USERS_EXTRAS for one in declared(extra))]
    assert {canonicalize_name(one.name) for one in asked_for} <= set(WRITTEN)


@pytest.mark.parametrize("row", WRITTEN.values(), ids=list(WRITTEN))
def test_a_licence_asks_no_more_than_to_pass_on_its_notice(row: tuple[str, str, str]) -> None:
    assert set(parts(row[1])) <= ALLOWED
