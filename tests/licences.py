"""Licences of what is installed with traceview, from the metadata of the packages themselves.

``python tests/licences.py`` prints the table of ``THIRD_PARTY.md``; with ``--write`` it puts it there.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import checkout  # noqa: F401
from declared import declared
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

DOCUMENT = Path(__file__).parents[1] / "THIRD_PARTY.md"
BEGIN, END = "<!-- licences -->", "<!-- end of licences -->"
USERS_EXTRAS = ("torch", "instrument", "dask", "parquet", "perfetto")
"""Extras that users install; what these packages need in turn is told by them."""

SPDX = {
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "MIT",
    "MIT-CMU",
    "PSF-2.0",
    "Zlib",
}
SPOKEN = {
    "Apache 2.0": "Apache-2.0",
    "Apache License, Version 2.0": "Apache-2.0",
    "apache-2.0": "Apache-2.0",
    "BSD": "BSD License",
    "BSD 3-Clause License": "BSD-3-Clause",
    "Public Domain": "public domain",
    "MIT License": "MIT",
    "Python Software Foundation License": "PSF, matplotlib's own",
}
"""How metadata from before SPDX expressions say it, and what the table says for it."""

ALLOWED = {*SPDX, *SPOKEN.values()}
"""Nothing that asks more of a user than to pass on the notices."""


class Row(NamedTuple):
    """A package, its licence, and what installs it: ``traceview`` or an extra."""

    package: str
    licence: str
    wanted_by: str


def licence_of(package: str) -> str:
    """Return a package's licence: its expression, else its short name, else its classifier."""
    about = metadata(package)
    first_line = (about.get("License") or "").strip().partition("\n")[0].strip()
    classifiers = [
        one.rpartition(" :: ")[2] for one in about.get_all("Classifier") or [] if one.startswith("License ::")
    ]
    named = about.get("License-Expression") or (first_line if first_line in {*SPDX, *SPOKEN} else None)
    said = named or next(iter(classifiers), first_line)
    return SPOKEN.get(said, said)


def parts(licence: str) -> list[str]:
    """Return the licences that an expression joins."""
    return re.split(r" AND | OR ", licence)


def names_of(found: Iterable[Requirement]) -> list[str]:
    """Return the names of the packages that are required in this environment."""
    return [canonicalize_name(one.name) for one in found if one.marker is None or one.marker.evaluate({"extra": ""})]


def closure(waiting: list[str]) -> Iterator[str]:
    """Yield packages and what they need in turn, each once."""
    seen = set[str]()
    while waiting:
        name = waiting.pop(0)
        if name not in seen:
            seen.add(name)
            yield name
            waiting += names_of(map(Requirement, requires(name) or []))


def rows() -> tuple[Row, ...]:
    """Return a row for each package that users get, as far as it is installed here."""
    wanted = dict.fromkeys(closure(names_of(declared())), "traceview")
    for extra in USERS_EXTRAS:
        for name in names_of(declared(extra)):
            wanted.setdefault(name, f"traceview[{extra}]")
    return tuple(Row(name, licence_of(name), by) for name, by in sorted(wanted.items()) if _is_installed(name))


def _is_installed(name: str) -> bool:
    try:
        metadata(name)
    except PackageNotFoundError:
        return False
    return True


def rows_written() -> tuple[Row, ...]:
    """Return the rows of the document."""
    table = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    return tuple(Row(*found) for found in re.findall(r"^\| `(.+)` \| (.+) \| `(.+)` \|$", table, re.MULTILINE))


def table(of: tuple[Row, ...]) -> str:
    """Return rows as a Markdown table."""
    lines = [f"| `{row.package}` | {row.licence} | `{row.wanted_by}` |" for row in sorted(of)]
    return "\n".join(("| package | licence | comes with |", "|---|---|---|", *lines))


def write() -> None:
    """Put the rows of this environment into the document; rows of packages that it lacks stay."""
    text = DOCUMENT.read_text(encoding="utf-8")
    merged = {row.package: row for row in (*rows_written(), *rows())}
    before, _, rest = text.partition(BEGIN)
    made = f"{before}{BEGIN}\n\n{table(tuple(merged.values()))}\n\n{END}{rest.partition(END)[2]}"
    DOCUMENT.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    if "--write" in sys.argv:
        write()
    else:
        sys.stdout.write(table(rows()) + "\n")
