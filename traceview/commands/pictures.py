"""The options of commands that write a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

Command = TypeVar("Command", bound="Callable[..., Any]")

STYLES = ("png", "svg", "pdf")


def picture_options(command: Command) -> Command:
    """Add the option for the file, whose ending says what kind of picture it is, and the one to overwrite it."""
    command = click.option("--force", is_flag=True, help="Overwrite FILE.")(command)
    return click.option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        metavar="FILE",
        required=True,
        help="Write to FILE: .png, .svg or .pdf.",
    )(command)


def picture_style(output: Path) -> str:
    """Return ``png``, ``svg`` or ``pdf`` by the ending of a file's name; raises ``UsageError`` for any other."""
    style = output.suffix.lower().removeprefix(".")
    if style not in STYLES:
        raise UsageError(f"{output} does not say what kind of picture it is", "end its name in .png, .svg or .pdf")
    return style
