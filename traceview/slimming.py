"""Makes a small trace without traces of people and machines out of a large one, and proves that it says the same."""

from __future__ import annotations

import tempfile
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceview.analysis.forwards import find_forwards
from traceview.analysis.measures import KernelBaseline
from traceview.analysis.report import ReportOptions, build_report
from traceview.errors import OutputError, UsageError
from traceview.nsys.database import open_database
from traceview.nsys.export import REPORT_SUFFIXES, exported
from traceview.nsys.reader import read_database
from traceview.nsys.slim import write_slim
from traceview.output import check_output, write_whole
from traceview.reading import read
from traceview.selection import select_forwards, select_window, span_of
from traceview.slim_proof import Difference, compare_reports

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traceview.analysis.forwards import Forward
    from traceview.model import Trace
    from traceview.nsys.database import Database

_SHOWN = 3


@dataclass(frozen=True)
class SlimOptions:
    """What to keep, and what to make sure of.

    ``report`` says how forwards are found and which of them are kept; ``window_ms`` is in ms from the first event, and
    forwards count inside it. ``verify`` compares the whole reports, ``force`` overwrites the output.
    """

    report: ReportOptions
    window_ms: tuple[float, float] | None = None
    keep_metrics: bool = False
    verify: bool = False
    force: bool = False
    nsys: str | None = None


@dataclass(frozen=True)
class Slimmed:
    """What was made: bytes before and after, how many forwards are in it, and how many values were compared.

    ``other_inflation`` are the indices of forwards whose compute inflation the report of all forwards gives otherwise:
    its baseline are the kernels of the forwards that are reported together.
    """

    n_bytes_before: int
    n_bytes: int
    forwards: int
    compared: int
    other_inflation: tuple[int, ...]


def slim(source: Path, output: Path, options: SlimOptions) -> Slimmed:
    """Write the chosen part of ``source`` to ``output``, whole or not at all; ``source`` is only read.

    The result is read back before it is put in place: its forwards must be those of the part, and with ``verify`` every
    number of the part's report must be in its report. Raises ``OutputError`` where they are not, or where ``output``
    exists without ``force``.
    """
    if output.exists() and source.exists() and output.samefile(source):
        raise UsageError(f"{output} is the input", "name another file for OUT")
    check_output(output, force=options.force, inputs=[source])
    with _opened(source, options.nsys) as database, tempfile.TemporaryDirectory(prefix="traceview-") as folder:
        trace = read_database(database)
        if options.window_ms is not None:
            trace = select_window(trace, options.window_ms)
        part, forwards, inflated = _part(trace, options.report)
        made = Path(folder) / "slim.sqlite"
        whole = options.report.forwards.selected is None
        time_ns = (part.start_ns, part.end_ns) if whole else span_of(trace, forwards)
        scrubber = write_slim(database, part, made, metrics_ns=time_ns if options.keep_metrics else None)
        found = read(made)
        _check_forwards(forwards, find_forwards(found, replace(options.report.forwards, selected=None)))
        compared = 0
        if options.verify:
            unselected = replace(options.report, forwards=replace(options.report.forwards, selected=None))
            compared, differences = compare_reports(
                build_report(trace, options.report),
                build_report(found, unselected),
                scrubber.value,
                whole=whole,
            )
            _refuse(differences)
        content = made.read_bytes()
    write_whole(output, content)
    return Slimmed(source.stat().st_size, len(content), len(forwards), compared, inflated)


@contextmanager
def _opened(source: Path, nsys: str | None) -> Iterator[Database]:
    """Open an export, or export a report to a temporary file first."""
    with exported(source, nsys) if source.suffix in REPORT_SUFFIXES else nullcontext(source) as path:
        database = open_database(path)
        with closing(database.connection):
            yield database


def _part(trace: Trace, options: ReportOptions) -> tuple[Trace, tuple[Forward, ...], tuple[int, ...]]:
    """Return the part of the trace that is kept, the forwards in it, and those that had another compute inflation."""
    forwards = find_forwards(trace, options.forwards)
    if options.forwards.selected is None:
        return trace, forwards, ()
    every = find_forwards(trace, replace(options.forwards, selected=None))
    indices = {forward.index for forward in forwards}
    others = [forward for forward in every if forward.index not in indices]
    whole, own = KernelBaseline(trace, every), KernelBaseline(trace, forwards)
    changed = dict.fromkeys(one.index for one in forwards if whole.inflation(one) != own.inflation(one))
    return select_forwards(trace, forwards, others), forwards, tuple(changed)


def _check_forwards(wanted: tuple[Forward, ...], found: tuple[Forward, ...]) -> None:
    """Raise unless the same forwards are found in the result: names, indices, devices, warm-up, layers, operations."""

    def told(forward: Forward) -> tuple[object, ...]:
        layers = tuple(sorted(set(forward.layer.tolist())))
        of = (forward.name, forward.index, forward.process, forward.device, forward.warmup, forward.layers_from)
        return (*of, layers, len(forward.operations))

    before, after = [told(forward) for forward in wanted], [told(forward) for forward in found]
    if before != after:
        lost = next((one[:2] for one in before if one not in after), None)
        new = next((one[:2] for one in after if one not in before), None)
        words = f"forward {lost[1]} ({lost[0]}) would change" if lost else f"forward {new} would be there as well"
        raise OutputError(
            f"cut like this, {words}: what tells it from its neighbours would be gone",
            "keep more forwards with --forwards A:B, or a part of the time with --window FROM:TO",
        )


def _refuse(differences: list[Difference]) -> None:
    if differences:
        shown = "; ".join(str(difference) for difference in differences[:_SHOWN])
        raise OutputError(
            f"the slimmed trace would not say the same in {len(differences)} places: {shown}",
            "keep more forwards with --forwards A:B, or the whole trace by leaving it out",
        )
