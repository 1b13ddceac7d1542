"""Options that several commands take, and the types of their values."""

from __future__ import annotations

import codecs
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from instrument import naming
from traceview.commands.completion import complete_thresholds
from traceview.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.analysis.report import ReportOptions
    from traceview.analysis.traffic import MachineOptions
    from traceview.model import Trace

Command = TypeVar("Command", bound="Callable[..., Any]")


class Slice(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``a:b`` with either side left out; the numbers are of the type given."""

    name = "a:b"

    def __init__(self, number: type[int] | type[float]) -> None:
        self.number = number

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return both sides, None for one that is left out."""
        if not isinstance(value, str):
            return value
        low, colon, high = value.partition(":")
        try:
            sides = tuple(self.number(side) if side else None for side in (low, high))
        except ValueError:
            sides = ()
        if not colon or not sides:
            self.fail(f"{value!r} is not of the form a:b", param, ctx)
        return sides


_TRACE = click.argument("path", metavar="TRACE", type=click.Path(path_type=Path, readable=False))
_SELECTION = (
    click.option("--process", type=int, metavar="PID", help="Only this process id."),
    click.option("--device", type=int, metavar="N", help="Only this CUDA device id."),
    click.option("--window", type=Slice(float), metavar="A:B", help="Only from A to B ms after the first event."),
    click.option(
        "--cache",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="Keep traces there as they were read.",
    ),
    click.option("--nsys", metavar="PROGRAM", help="The nsys that exports a .nsys-rep; else $NSYS, PATH, /opt/nvidia."),
)


def _finite(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Refuse ``nan``, which lies inside any range."""
    if value is not None and not math.isfinite(value):
        raise click.BadParameter(f"{value} is no rate")
    return value


class Override(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``name=number`` for one of the thresholds of findings."""

    name = "name=number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name and the number."""
        from dataclasses import fields

        from traceview.analysis.case import Thresholds

        name, _, number = value.partition("=")
        known = [field.name for field in fields(Thresholds)]
        if name not in known:
            self.fail(f"{name!r} is no threshold; there is: {', '.join(known)}", param, ctx)
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self.fail(f"{number!r} is no number", param, ctx)
        return name, value


class Pcie(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """``GENxLANES`` of a PCIe link."""

    name = "GENxLANES"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return generation and lanes."""
        from traceview.analysis.links import pcie_rate

        generation, _, lanes = str(value).lower().partition("x")
        if not (generation.isdecimal() and lanes.isdecimal()):
            self.fail(f"{value!r} is not of the form 5x16", param, ctx)
        if pcie_rate(int(generation), int(lanes)) is None or int(lanes) > _MOST_LANES:
            self.fail(f"there is no PCIe {generation}.0 with {lanes} lanes; known are 1x1 to 6x16", param, ctx)
        return int(generation), int(lanes)


_MOST_LANES = 16
_MACHINE = (
    click.option(
        "--topology",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="What `nvidia-smi topo -m` printed: tells who shares which link.",
    ),
    click.option("--pcie", type=Pcie(), metavar="GENxLANES", help="The PCIe link where no facts tell, as 5x16."),
    click.option(
        "--link-gbps",
        type=click.FloatRange(0, 100_000, min_open=True),
        callback=_finite,
        metavar="X",
        help="Or what it carries at most in one direction, GB/s.",
    ),
)
_FORWARDS = (
    click.option("--forward-range", metavar="RE", default=naming.FORWARD_PATTERN, help="Names of forward ranges."),
    click.option("--load-range", metavar="RE", default=naming.LOAD_PATTERN, help="Names of load ranges; group layer."),
    click.option("--compute-range", metavar="RE", default=naming.COMPUTE_PATTERN, help="Names of compute ranges."),
    click.option("--layers-from", type=click.Choice(["nvtx", "events"]), help="Names only, or events for loads too."),
    click.option(
        "--layers-per-forward",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        help="Layers by events per pass.",
    ),
    click.option("--mover-kernel", metavar="RE", help="Names of kernels that copy; has a default."),
    click.option("--domain", metavar="NAME", help="Only ranges of this NVTX domain name forwards and layers."),
    click.option("--allow-sync", metavar="RE", help="Ranges in which blocking calls are meant."),
    click.option(
        "--threshold",
        "thresholds",
        type=Override(),
        multiple=True,
        metavar="NAME=X",
        shell_complete=complete_thresholds,
        help="Change when findings count.",
    ),
    click.option("--warmup", type=click.IntRange(0), metavar="N", help="Forwards of each process that are warm-up."),
    click.option("--forwards", type=Slice(int), metavar="A:B", help="Only forwards A to B - 1, counted from 0."),
)


def trace_options(command: Command) -> Command:
    """Add the trace argument and the options that choose a part of it."""
    for option in reversed((_TRACE, *_SELECTION)):
        command = option(command)
    return command


def machine_options(command: Command) -> Command:
    """Add the options that say what the machine is like."""
    for option in reversed(_MACHINE):
        command = option(command)
    return command


def forward_options(command: Command) -> Command:
    """Add the options that say how forwards are found and judged."""
    for option in reversed(_FORWARDS):
        command = option(command)
    return command


def read_trace(chosen: dict[str, Any]) -> Trace:
    """Read the trace that the trace options name."""
    from traceview.reading import read, read_through

    low, high = chosen["window"] or (None, None)
    wanted = {
        "nsys": chosen["nsys"],
        "process": chosen["process"],
        "device": chosen["device"],
        "window_ms": None if chosen["window"] is None else (low or 0.0, float("inf") if high is None else high),
        "metrics": chosen.get("metrics", False),
    }
    cache = chosen.get("cache")
    if cache is None:
        return read(chosen["path"], **wanted)
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always", RuntimeWarning)
        trace = read_through(cache, chosen["path"], **wanted)
    for complaint in complaints:
        click.echo(f"traceview: {complaint.message}", err=True)
    return trace


def machine_of(chosen: dict[str, Any]) -> MachineOptions:
    """Return what the machine options say; raises ``UsageError`` for a topology that cannot be read."""
    from traceview.analysis.links import LinkOptions
    from traceview.analysis.topology import parse_topology
    from traceview.analysis.traffic import MachineOptions

    path: Path | None = chosen.get("topology")
    topology = None
    if path is not None:
        try:
            topology = parse_topology(_decoded(path.read_bytes()), str(path))
        except OSError as error:
            raise UsageError(f"--topology {path}: {error.strerror}", "check the path") from None
    return MachineOptions(LinkOptions(chosen.get("link_gbps"), chosen.get("pcie")), topology)


def _decoded(content: bytes) -> str:
    """Return the text of a file that a shell redirected into; PowerShell writes UTF-16, and marks UTF-8."""
    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    return content.decode(encoding, errors="replace")


def report_options(chosen: dict[str, Any]) -> ReportOptions:
    """Return what the forward options ask for."""
    from traceview.analysis.case import Thresholds
    from traceview.analysis.forwards import ForwardOptions
    from traceview.analysis.naming import RangeNames
    from traceview.analysis.report import ReportOptions
    from traceview.analysis.roles import MOVER_KERNEL

    names = RangeNames(chosen["forward_range"], chosen["load_range"], chosen["compute_range"], chosen["domain"])
    forwards = ForwardOptions(
        names=names,
        warmup=chosen["warmup"],
        selected=chosen["forwards"],
        layers_from=chosen["layers_from"],
        layers_per_forward=chosen["layers_per_forward"],
        mover_kernel=chosen["mover_kernel"] or MOVER_KERNEL,
    )
    return ReportOptions(
        forwards, chosen["allow_sync"], Thresholds(**dict(chosen["thresholds"])), machine=machine_of(chosen)
    )
