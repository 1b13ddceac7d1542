"""The help of every command can be read as it is printed."""

from __future__ import annotations

import click
import pytest

from instrument.cli import cli
from traceview.cli import COMMANDS, main


def help_of(group: click.Group, name: str) -> str:
    """Return a command's help as a terminal of 80 columns shows it."""
    parent = click.Context(group, info_name="traceview", max_content_width=80, **group.context_settings)
    command = group.get_command(parent, name)
    assert command is not None
    return command.get_help(click.Context(command, info_name=name, parent=parent, max_content_width=80))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_examples_each_on_its_line(name: str) -> None:
    text = help_of(main, name)
    assert f"\n    traceview {name} " in text
    assert "\\b" not in text


@pytest.mark.parametrize("name", ["run", "capture", "attach"])
def test_the_instrumentation_has_no_stray_mark_either(name: str) -> None:
    assert "\\b" not in help_of(cli, name)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    unexplained = {one.name for one in command.params if isinstance(one, click.Option) and not one.help}
    assert unexplained <= {"style"}, "only --format, whose choices say it all, needs no sentence"
