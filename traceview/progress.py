"""Shows how far long work has come: a bar on a terminal, nothing in a pipe or a log."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from traceview.nsys.export import REPORT_SUFFIXES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@contextmanager
def steps(total: int, source: Path | None = None) -> Iterator[Callable[[str], None]]:
    """Give a function to be called with a few words at the begin of each of ``total`` steps.

    The bar is on standard error, only where that is a terminal, and gone at the end. Where ``source`` is a report that
    ``nsys`` has to export first there is none, since nsys shows its own.
    """
    if not sys.stderr.isatty() or (source is not None and source.suffix in REPORT_SUFFIXES):
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
            shown.update(task, description=escape(words), completed=begun, refresh=True)
            begun += 1

        yield begin
