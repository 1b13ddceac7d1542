"""The command line: ``python -m instrument run``, ``capture`` and ``attach``."""

from __future__ import annotations

import importlib
import json
import math
import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from instrument.errors import InstrumentError, WrongUsageError
from instrument.workload import options as choices
from instrument.workload.plan import LAYOUTS, make_plan, plan_json, plan_text

PROGRAM = "python -m instrument"

LAZY_COMMANDS = {"attach": "instrument.attaching.command"}
"""Commands that live in modules of their own, imported only when they are asked for."""

DEFAULT_LINK_GBPS = 63.0
"""PCIe 5.0 x16: 32 GT/s x 128/130 x 16 lanes / 8, the most such a link can carry."""

_FAULT_LIST = "\b\nFaults:\n" + "\n".join(f"  {name:<17} {does}" for name, does in choices.FAULTS.items())


class FiniteRange(click.FloatRange):
    """A number between two others; ``nan`` is none, though it is not beyond either of them."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or fail."""
        if math.isnan(number := super().convert(value, param, ctx)):
            self.fail(f"{value} is not a number.", param, ctx)
        return number


class Commands(click.Group):
    """The commands, some of which are imported only when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return every command that this installation has."""
        found = set(super().list_commands(ctx)) | {name for name in LAZY_COMMANDS if self._load(name) is not None}
        return sorted(found)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by name, None when there is none."""
        return super().get_command(ctx, cmd_name) or self._load(cmd_name)

    def _load(self, name: str) -> click.Command | None:
        if name not in LAZY_COMMANDS:
            return None
        try:
            module = importlib.import_module(LAZY_COMMANDS[name])
        except ModuleNotFoundError as error:
            if error.name == LAZY_COMMANDS[name]:
                return None
            raise
        command: click.Command = getattr(module, name)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Name layer-by-layer loads and compute in a program, and run a workload that shows each fault on purpose.

    What one range costs here: python -m instrument.overhead
    """


LAYERS = click.IntRange(1, 100_000)
MIB = click.IntRange(1, 1 << 20)
"""Up to 1 TiB a layer: more than any machine that this is for has memory."""

SEED = click.IntRange(0, (1 << 63) - 1)
"""What every generator of random numbers takes."""


@cli.command(epilog=_FAULT_LIST)
@click.option("--layers", type=LAYERS, default=8, show_default=True, help="Layers of one forward.")
@click.option("--mib-per-layer", type=MIB, default=64, show_default=True, help="MiB to load per layer.")
@click.option(
    "--compute-ratio",
    type=FiniteRange(0.01, 1000),
    default=1.1,
    show_default=True,
    help="Compute time of a layer over the time of a plain copy of its bytes; calibrated at start.",
)
@click.option("--forwards", type=click.IntRange(1), default=3, show_default=True, help="Forwards to measure.")
@click.option("--warmup", type=click.IntRange(0), default=2, show_default=True, help="Forwards to run before those.")
@click.option(
    "--pool", type=click.Choice(choices.POOLS), default="pinned", show_default=True, help="Kind of host memory."
)
@click.option("--huge-pages", type=click.Choice(choices.HUGE_PAGES), help="Pages of a registered pool.")
@click.option("--numa", metavar="local|NODE", help="Bind the pool to the GPU's NUMA node, or to a node by number.")
@click.option(
    "--mover",
    type=click.Choice(choices.MOVERS),
    default="copy-engine",
    show_default=True,
    help="Who moves: one copy per piece, one batch of copies per layer, or one kernel per layer.",
)
@click.option(
    "--sm-blocks",
    type=click.IntRange(1),
    help=f"Thread blocks of the kernel that moves (default {choices.DEFAULT_SM_BLOCKS}).",
)
@click.option(
    "--layout",
    type=click.Choice(tuple(LAYOUTS)),
    help="How the host pool holds the layers; all but 'contiguous' (the default) use shuffled pages.",
)
@click.option("--page-tokens", type=click.IntRange(1), help="Tokens of a page (default 64).")
@click.option("--token-bytes", type=click.IntRange(1), help="Bytes of a token in one layer (default 4096).")
@click.option("--piece-kib", type=click.IntRange(1), help="Cut a contiguous layer into pieces of so many KiB.")
@click.option("--writeback", is_flag=True, help="Copy each layer back to the host after its compute.")
@click.option("--inbound-peer", is_flag=True, help="Let a second GPU copy into this one meanwhile.")
@click.option(
    "--storage",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Read the pool from this file before each load; it is written first where there is none.",
)
@click.option("--storage-io", type=click.Choice(choices.STORAGE_IO), help="Read through the page cache or past it.")
@click.option("--no-stage", is_flag=True, help="Read straight into the pool instead of into a staging buffer.")
@click.option(
    "--fault",
    type=click.Choice(tuple(choices.FAULTS)),
    default="none",
    show_default=True,
    help="What to do wrong on purpose, see below.",
)
@click.option(
    "--late-us",
    type=click.IntRange(1),
    help=f"Host work between two submissions in microseconds (default {choices.DEFAULT_LATE_US}).",
)
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the data and the page order.")
@click.option("--dry-run", is_flag=True, help="Print the plan and do nothing; needs no GPU.")
@click.option(
    "--link-gbps",
    type=FiniteRange(0.001, 1e6),
    help=f"Rate to plan for in GB/s (default {DEFAULT_LINK_GBPS:g}: PCIe 5.0 x16).",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def run(**given: Any) -> None:
    """Run the reference workload: per forward, all loads ahead on one stream, compute behind them layer by layer.

    The last line of the output is JSON: parameters, bytes, times from CUDA events, and whether every byte that arrived
    on the device is right. Wrong bytes end the run with exit code 1.

    \b
    Examples:
      python -m instrument run --dry-run --layout page-first
      python -m instrument run --fault item --forwards 40
    """
    wanted = _options(given)
    if given["dry_run"]:
        plan = make_plan(wanted.shape, wanted.compute_ratio, given["link_gbps"] or DEFAULT_LINK_GBPS)
        click.echo(json.dumps(plan_json(plan)) if given["as_json"] else plan_text(plan))
        return
    line = _run_workload(wanted)
    click.echo(json.dumps(line, separators=(",", ":")))
    if not line["verified"]:
        raise InstrumentError("wrong bytes arrived on the device: see 'verification' in the line above")


def _options(given: dict[str, Any]) -> choices.Options:
    return choices.options_from({**given, "json": given["as_json"]})


def _run_workload(wanted: choices.Options) -> dict[str, Any]:
    try:
        import torch
    except ImportError:
        raise InstrumentError("PyTorch is missing: pip install torch, or add --dry-run to see the plan") from None
    from instrument.workload.outcome import summary
    from instrument.workload.run import run as run_workload

    try:
        line = run_workload(wanted)
    except (torch.OutOfMemoryError, MemoryError) as error:
        reason = str(error).splitlines()[0]
        raise InstrumentError(f"not enough memory: use fewer --layers or --mib-per-layer ({reason})") from None
    click.echo(summary(line))
    return line


@cli.command()
@click.option("--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for the files.")
@click.option("--name", default="capture", show_default=True, help="Name of the files, without suffix.")
@click.option("--nsys", metavar="PATH", help="The nsys to use; else $NSYS, PATH, or where installers put it.")
@click.option("--graph-nodes", is_flag=True, help="Record the nodes of CUDA graphs, not each graph as a whole.")
@click.option("--gpu-metrics", "metrics", metavar="GPUS", help="Sample the hardware counters of these GPUs: all, 0, ..")
@click.option("--gpu-metrics-hz", "metrics_hz", type=click.IntRange(10), help="How often to sample them.")
@click.option("--cuda-stacks", is_flag=True, help="Record the call stack of CUDA calls.")
@click.option("--python-stacks", is_flag=True, help="Record the Python stack of CUDA calls.")
@click.option("--force", is_flag=True, help="Replace files of an earlier capture.")
@click.argument("run_options", nargs=-1, type=click.UNPROCESSED)
def capture(nsys: str | None, run_options: tuple[str, ...], **given: Any) -> None:
    """Capture a run with Nsight Systems: NAME.nsys-rep, its export NAME.sqlite, and NAME.json with the run's line.

    RUN_OPTIONS, after `--`, are those of `python -m instrument run`.

    \b
    Example:
      python -m instrument capture --out captures --name item -- --fault item
      traceview report captures/item.sqlite
    """
    from instrument.capture import Request, find_nsys
    from instrument.capture import capture as capture_run

    if given["metrics_hz"] and not given["metrics"]:
        raise WrongUsageError("--gpu-metrics-hz needs counters to sample: add --gpu-metrics all")
    if not re.fullmatch(r"\w[\w.+-]*", given["name"]):
        raise WrongUsageError("--name is the name of a file without folders: use --out for the folder")
    params = run.make_context(f"{PROGRAM} run", list(run_options)).params
    _options(params)
    if params["dry_run"]:
        raise WrongUsageError("a dry run leaves nothing to capture: leave out --dry-run")
    for path in capture_run(Request(run=run_options, **given), find_nsys(nsys, os.environ)):
        click.echo(path)


def _complaint(error: click.ClickException) -> str:
    """Return what is wrong in one line, and which help tells more; the help itself where nothing was asked for."""
    message = error.format_message()
    if "\n" in message:
        return message
    context = getattr(error, "ctx", None)
    return f"error: {message.rstrip('.')}: see {context.command_path if context else PROGRAM} --help"


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 not possible here, 2 wrong usage, 130 interrupted."""
    try:
        code = cli.main(args=arguments, prog_name=PROGRAM, standalone_mode=False)
    except click.ClickException as error:
        click.echo(_complaint(error), err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)
    except InstrumentError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)
