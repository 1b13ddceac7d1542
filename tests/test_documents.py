"""README.md and MEASURES.md show what commands print and samples measure, and leave out no measure."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import click
import pytest
from documents import ROOT

import traceview
from traceview.analysis.advice import ADVICE
from traceview.analysis.whatif import EDITS
from traceview.cli import COMMANDS, main
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA: dict[str, Any] = json.loads((ROOT / "traceview" / "render" / "report.schema.json").read_text())


def keys(schema: Any) -> Iterator[str]:
    """Yield the name of every property that the JSON report can have."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for part in schema.values():
            yield from keys(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from keys(part)


@pytest.mark.pinned
def test_the_documents_show_what_is_true() -> None:
    """In a process of its own, for a command remembers the options of the context that first asked for its help."""
    told = subprocess.run([sys.executable, ROOT / "tests" / "documents.py"], cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_measure_cause_and_edit_is_defined() -> None:
    text = (ROOT / "MEASURES.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`\s]+)`", text))
    assert set(keys(SCHEMA)) - words == set()
    assert {*CATEGORIES, *ADVICE, *EDITS} - words == set()


def test_the_changelog_tells_of_this_version_and_of_every_command() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$", text, re.MULTILINE)
    assert traceview.__version__ == released[0]
    assert {name for name in COMMANDS if f"`traceview {name}`" not in text} == set()


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "MEASURES.md"])
def test_commands_are_called_as_they_can_be(document: str) -> None:
    fences = re.findall(
        r"^```bash\n(.*?)^```$", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    lines = [line for fence in fences for line in fence.splitlines() if line.startswith("traceview ")]
    for line in lines:
        _, name, *words = shlex.split(re.split(r" [|>&]+ ", line)[0], comments=True)
        command = main.get_command(click.Context(main), name)
        assert command is not None, line
        command.make_parser(click.Context(command)).parse_args(words)  # an option that is none ends the test
    assert lines or document == "MEASURES.md"


def test_links_between_documents_lead_somewhere() -> None:
    for document in ROOT.glob("*.md"):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (ROOT / target).exists(), f"{document.name}: {target}"


def test_sections_that_are_linked_exist() -> None:
    for document in ROOT.glob("*.md"):
        for name, section in re.findall(r"\]\(([\w.]*)#([^)]+)\)", document.read_text(encoding="utf-8")):
            text = (ROOT / name if name else document).read_text(encoding="utf-8")
            titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            assert section in {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}, section
