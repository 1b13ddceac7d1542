"""What pyproject.toml declares: read from the file, for an editable installation remembers what it was."""

from __future__ import annotations

import sys
from pathlib import Path

from packaging.requirements import Requirement

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared(extra: str = "") -> list[Requirement]:
    """Return what the package requires, or what one of its extras adds."""
    return [
        Requirement(line) for line in (_PROJECT["optional-dependencies"][extra] if extra else _PROJECT["dependencies"])
    ]


EXTRAS = tuple(_PROJECT["optional-dependencies"])
"""Names of all extras."""
