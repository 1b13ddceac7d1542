"""Shows how far long work has come: a bar on a terminal, nothing in a pipe or a log."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Give a function to be called with a few words at the begin of each of ``total`` steps.

    The bar is on standard error, only where that is a terminal, and gone at the end.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        begun = 0

        def begin(words: str) -> None:
            nonlocal begun
            shown.update(task, description=escape(words), completed=begun)
            begun += 1

        yield begin
