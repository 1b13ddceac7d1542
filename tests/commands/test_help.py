"""Help texts: they show what was meant, on a screen of ordinary width."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from traceview.cli import main

WIDEST = 100

COMMANDS = sorted(main.list_commands(click.Context(main)))


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_no_markup_and_fits_the_screen(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"]).output
    assert shown.startswith("Usage: ")
    assert "\\" not in shown
    assert "\b" not in shown
    assert [line for line in shown.splitlines() if len(line) > WIDEST] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_stand_on_lines_of_their_own(name: str) -> None:
    lines = CliRunner().invoke(main, [name, "--help"]).output.splitlines()
    [title] = [number for number, line in enumerate(lines) if line in ("  Example:", "  Examples:")]
    assert lines[title + 1].strip().startswith(f"traceview {name} ")
