"""Runs a command on a damaged trace and judges what came of it, whatever the trace is.

An outcome is right where the command ends within bounded time and memory with a documented exit code and a report or
one line of error, where no name of the trace is obeyed by a terminal, run by a spreadsheet or drawn by a browser, and
where the trace itself is as it was.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import re
import resource
import signal
import traceback
import warnings
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fuzz_scenes import SAMPLES
from jsonschema import Draft202012Validator
from markdown_it import MarkdownIt

from traceview.cli import run
from traceview.render.json import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CPU_SECONDS = 10.0
"""Time that a command may take on a trace of a few hundred rows, on a slow machine."""
_ROOM_BYTES = 2 << 30
_GOOD = str(SAMPLES / "item.sqlite")
_READERS, _JUDGES = frozenset({0, 1, 2}), frozenset({0, 1, 2, 3})
_CANARY = "fuzz-canary"
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")

COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "IN"),
    "report everything": ("report", "IN", "--metrics", "--checklist", "--what-if", "coalesce,pin,no-sync,own-stream"),
    "report json": ("report", "IN", "--metrics", "--checklist", "--format", "json"),
    "report markdown": ("report", "IN", "--format", "markdown"),
    "report html": ("report", "IN", "--metrics", "--format", "html"),
    "report events": ("report", "IN", "--layers-from", "events", "--format", "json"),
    "report window": ("report", "IN", "--window", "0.01:0.2", "--format", "json"),
    "report passes": ("report", "IN", "--layers-from", "events", "--layers-per-forward", "2", "--format", "json"),
    "report some": ("report", "IN", "--forwards", "1:", "--warmup", "1", "--format", "markdown"),
    "report movers": ("report", "IN", "--allow-sync", "stage", "--mover-kernel", "transfer"),
    "report process": ("report", "IN", "--process", "4711", "--device", "0"),
    "doctor": ("doctor", "IN"),
    "timeline part": ("timeline", "IN", "-o", "OUT.svg", "--forward", "1", "--layers", "0:1"),
    "timeline": ("timeline", "IN", "-o", "OUT.svg"),
    "plot overlap": ("plot", "overlap", "IN", "-o", "OUT.svg"),
    "plot copies": ("plot", "copies", "IN", "-o", "OUT.svg"),
    "plot accounting": ("plot", "accounting", "IN", "-o", "OUT.svg"),
    "plot history": ("plot", "history", "IN", "-o", "OUT.svg"),
    "export csv": ("export", "IN", "OUT", "--to", "csv"),
    "export parquet": ("export", "IN", "OUT", "--to", "parquet"),
    "export perfetto": ("export", "IN", "OUT", "--to", "perfetto"),
    "slim": ("slim", "IN", "OUT.sqlite", "--verify", "--keep-metrics"),
    "slim part": ("slim", "IN", "OUT.sqlite", "--forwards", "1:2"),
    "diff": ("diff", _GOOD, "IN"),
    "diff itself": ("diff", "IN", "IN", "--only-changed"),
    "diff fail": ("diff", "IN", _GOOD, "--fail-on", "regression", "--format", "json"),
    "diff html": ("diff", "IN", _GOOD, "--format", "html"),
    "diff markdown": ("diff", _GOOD, "IN", "--format", "markdown"),
    "check": ("check", "IN", "--github", "--junit", "OUT.xml", "--sarif", "OUT.sarif"),
    "check baseline": ("check", _GOOD, "--baseline", "IN", "--format", "markdown"),
    "budget": ("budget", "IN"),
    "save": ("save", "IN", "--to", "OUT.db", "--commit", "abc"),
}
"""Command lines by name; IN is the damaged trace, OUT a place for what is written."""


class WrongOutcomeError(Exception):
    """The outcome is not right; ``signature`` is the same for the same fault."""

    def __init__(self, signature: str, details: str) -> None:
        super().__init__(f"{signature}\n{details}")
        self.signature = signature


class _OutOfTimeError(BaseException):
    """The command took more than its time; nothing in the command catches it."""


@dataclass(frozen=True)
class Outcome:
    """What a command gave: its exit code, its two streams and the files it wrote."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]


def judge(trace: Path, name: str) -> Outcome:
    """Run one of ``COMMANDS`` on a trace, alone in its folder; raise ``WrongOutcomeError`` for a wrong outcome."""
    before = hashlib.sha256(trace.read_bytes()).digest()
    words = [word.replace("IN", str(trace)) if word == "IN" else word for word in COMMANDS[name]]
    words = [word.replace("OUT", str(trace.parent / "out")) if word.startswith("OUT") else word for word in words]
    outcome = run_bounded(words, trace)
    if hashlib.sha256(trace.read_bytes()).digest() != before:
        raise WrongOutcomeError("the trace was changed", name)
    check_outcome(name, outcome)
    return outcome


def check_outcome(name: str, outcome: Outcome) -> None:
    """Raise ``WrongOutcomeError`` where the outcome of one of ``COMMANDS`` is wrong."""
    for check in (_check_ending, _check_terminal, _check_files, _check_formats):
        check(name, outcome)


def run_bounded(words: list[str], trace: Path, cpu_seconds: float | None = None) -> Outcome:
    """Run the command line in this process, with a limit of CPU time and memory."""
    seconds = CPU_SECONDS if cpu_seconds is None else cpu_seconds
    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2)]
    code: Any = None
    try:
        with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]), _bounded(seconds):
            run(words)
    except SystemExit as ended:
        code = ended.code
    except _OutOfTimeError as late:
        raise WrongOutcomeError(f"out of time: {_place(late)}", f"{words[0]}: {seconds} s of CPU time") from None
    except (Exception, KeyboardInterrupt) as error:
        signature = f"{type(error).__name__}: {_place(error)}"
        raise WrongOutcomeError(signature, "".join(traceback.format_exception(error))) from None
    out, err = (stream.detach().getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    return Outcome(code, out, err, dict(_written(trace)))


@contextlib.contextmanager
def _bounded(cpu_seconds: float) -> Iterator[None]:
    """Limit CPU time and address space for a while; warnings, which would be lines on the terminal, are errors."""

    def stop(*_: Any) -> None:
        raise _OutOfTimeError

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (size + _ROOM_BYTES, hard))
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ResourceWarning)
            yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGPROF, handler)


def _place(error: BaseException) -> str:
    """Return the innermost line of traceview on a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/traceview/" in frame.filename and frame.name != "run"]
    return f"{ours[-1].filename.rpartition('/traceview/')[2]}:{ours[-1].lineno}" if ours else "outside"


def _written(trace: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(trace.parent.rglob("*")):
        if path.is_file() and path != trace:
            yield str(path.relative_to(trace.parent)), path.read_bytes()


def _check_ending(name: str, outcome: Outcome) -> None:
    """The exit code is a documented one, and an error is one line that says so."""
    allowed = _JUDGES if name.startswith(("check", "diff fail")) else _READERS
    if outcome.code not in allowed:
        raise WrongOutcomeError(f"exit code {outcome.code}", name)
    errors = outcome.err.splitlines()
    failed = outcome.code in {1, 2} and not (name.startswith(("check", "diff fail")) and outcome.out)
    if failed and (len(errors) != 1 or not errors[0].startswith("traceview: ") or ": " not in errors[0][11:]):
        raise WrongOutcomeError("an error that is not one clear line", f"{name}: {outcome.err!r}")
    if failed and outcome.out:
        raise WrongOutcomeError("half a report", f"{name}: {outcome.out[-300:]!r}")
    if any(not line.startswith(("traceview: ", "note: ", "::")) for line in errors):
        raise WrongOutcomeError("a line on standard error that is no message", f"{name}: {outcome.err!r}")
    if outcome.code == 0 and not outcome.out and not outcome.files:
        raise WrongOutcomeError("no answer", name)


def _check_terminal(name: str, outcome: Outcome) -> None:
    """What a terminal gets is text and line breaks."""
    for stream in (outcome.out, outcome.err):
        if "html" in name:
            stream = stream.replace("\t", "")
        odd = sorted({one for one in stream if not one.isprintable() and one != "\n"})
        if odd:
            raise WrongOutcomeError("a control character on the terminal", f"{name}: {odd}")


def _check_files(name: str, outcome: Outcome) -> None:
    """Files are there where the command succeeded, whole ones and no others."""
    if outcome.code not in {0, 1, 3} or (outcome.code == 1 and not name.startswith("check")):
        if outcome.files:
            raise WrongOutcomeError("a file left behind by a failure", f"{name}: {list(outcome.files)}")
        return
    for path, content in outcome.files.items():
        if Path(path).name.startswith(".") or path.endswith(("-journal", "-wal")) or not content:
            raise WrongOutcomeError("a temporary or empty file left behind", f"{name}: {path}")
        _FILES.get(Path(path).suffix, lambda *_: None)(name, content)


def _check_formats(name: str, outcome: Outcome) -> None:
    """What was printed is of the format that was asked for."""
    if outcome.code in {1, 2} or not outcome.out:
        return
    if name == "report html" or name == "diff html":
        _check_markup(name, outcome.out.encode())
    elif "markdown" in name:
        page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(outcome.out)
        _check_markup(name, page.encode())
    elif COMMANDS[name][-1] == "json":
        _check_json(name, outcome.out.encode())


def _check_json(name: str, content: bytes) -> None:
    found = json.loads(content, parse_constant=lambda word: _refuse(f"{word} in JSON", name))
    if name.startswith("report"):
        wrong = next(_validator().iter_errors(found), None)
        if wrong is not None:
            place = ".".join("*" if isinstance(one, int) else one for one in wrong.absolute_path)
            raise WrongOutcomeError(f"JSON against its schema: {place}", f"{name}: {wrong.message[:300]}")
        for forward in found["forwards"]:
            if sum(forward["accounting"].values()) != forward["makespan_ns"]:
                raise WrongOutcomeError("an accounting that does not sum", f"{name}: {forward['name']}")


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(schema())


def _refuse(signature: str, name: str) -> None:
    raise WrongOutcomeError(signature, name)


class _Elements(HTMLParser):
    """Finds elements, attributes and links that a name of a trace made."""

    def __init__(self) -> None:
        super().__init__()
        self.strange: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Look at an element."""
        if tag == _CANARY or any(name == _CANARY or "javascript:" in (value or "") for name, value in attrs):
            self.strange.append(f"{tag} {attrs}")

    def handle_comment(self, data: str) -> None:
        """Look at a comment."""
        if _CANARY in data:
            self.strange.append(f"comment {data[:80]}")


def _check_markup(name: str, content: bytes) -> None:
    page = _Elements()
    page.feed(content.decode())
    if page.strange:
        raise WrongOutcomeError("a name became markup", f"{name}: {page.strange[0]}")


def _check_csv(name: str, content: bytes) -> None:
    for row in csv.reader(io.StringIO(content.decode(), newline="")):
        for cell in row:
            if "\0" in cell or (_FORMULA.match(cell) and not _NUMBER.fullmatch(cell)):
                raise WrongOutcomeError("a formula in a cell", f"{name}: {cell[:80]!r}")


def _check_xml(name: str, content: bytes) -> None:
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(content)
    except ElementTree.ParseError as error:
        raise WrongOutcomeError("XML that no parser reads", f"{name}: {error}") from None
    if any(_CANARY in one.tag or any(_CANARY in key for key in one.attrib) for one in root.iter()):
        raise WrongOutcomeError("a name became markup", name)


def _check_trace(name: str, content: bytes) -> None:
    if not content.startswith(b"SQLite format 3"):
        raise WrongOutcomeError("a slimmed trace that is none", name)


_FILES: dict[str, Callable[[str, bytes], None]] = {
    ".csv": _check_csv,
    ".svg": _check_xml,
    ".xml": _check_xml,
    ".sarif": _check_json,
    ".sqlite": _check_trace,
}
"""How a written file is judged, by the ending of its name."""
