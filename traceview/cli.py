"""The command line: which commands there are, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import importlib
import io
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import traceview
from traceview.errors import TraceviewError
from traceview.signals import status_of, stoppable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

COMMANDS = {
    "report": "Tell what a trace's layer-by-layer loading costs and where the time goes.",
    "timeline": "Draw one forward as a picture: host, loads, compute, and why compute had holes.",
    "plot": "Draw overlap, copies, accounting or the history of forwards as a picture.",
    "export": "Write a trace's operations, calls, ranges and holes for Perfetto, or as CSV or Parquet tables.",
    "slim": "Make a trace small enough to commit, without host, user, environment and paths.",
    "doctor": "Tell what a trace holds and lacks, and which capture flags would add it.",
    "diff": "Compare traces before and after a change: what differs beyond chance, and where.",
    "check": "Fail when traces break a budget or regress from a baseline: for CI, without a GPU.",
    "budget": "Write a budget from a good run, for check.",
    "save": "Save a trace's results to an SQLite file of runs.",
    "history": "Tell how a measure went over the saved runs.",
    "fleet": "Compare the ranks of one run: who comes late, and what makes them late.",
}
"""Commands and their one-line help; each lives in the module of its name and is imported when it is used."""


class _Commands(click.Group):
    """A group that imports a command only when somebody asks for it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, importing its module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"traceview.commands.{cmd_name}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands and options, again without importing any command."""
        from click.shell_completion import CompletionItem

        commands = [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]
        return commands + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(traceview.__version__, prog_name="traceview")
def main() -> None:
    """Tell from an Nsight Systems capture whether layer-by-layer loading hides behind compute.

    \b
    Example:
      nsys profile --trace=cuda,nvtx -o run python serve.py
      nsys export --type sqlite -o run.sqlite run.nsys-rep
      traceview report run.sqlite
    """


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 answered, 1 unreadable input, 2 wrong usage, 130 interrupted, 143 terminated."""
    _prepare_streams()
    os.environ["MPLBACKEND"] = "agg"  # no picture needs a display, whatever is set for the user's own
    came: list[int] = []
    try:
        with stoppable(came):
            status = _status(arguments)
    except (KeyboardInterrupt, Exception):
        # it may come between two steps, and a compiled module whose import is interrupted fails in other words
        if not came:
            raise
    sys.exit(status_of(came[0]) if came else status)


def _prepare_streams() -> None:
    """Give a closed standard stream a place to go, and let characters that an encoding lacks become ``?``."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - as long as the process
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _status(arguments: Sequence[str] | None) -> int:
    try:
        status: Any = main.main(args=arguments, prog_name="traceview", standalone_mode=False)
        sys.stdout.flush()
    except TraceviewError as error:
        return _complain(error.message, error.hint, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "traceview"
        return _complain(error.format_message(), f"see: {context} --help", 2)
    except click.ClickException as error:
        return _complain(error.format_message(), "", 1)
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # the reader of the pipe has gone; keep the interpreter from writing to it once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _complain(f"the output could not be written: {error.strerror or error}", "is the disk full?", 1)
    return status if isinstance(status, int) else 0


def _complain(message: str, hint: str, status: int) -> int:
    line = " ".join(f"{message.rstrip('.')}: {hint}".split() if hint else message.split())
    with suppress(OSError):
        click.echo(f"traceview: {''.join(one if one.isprintable() else '?' for one in line)}", err=True)
    return status
