"""The shape of the code: imports go one way, modules stay small, Nsight's names stay in the reader."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path.relative_to(ROOT) for folder in ("traceview", "instrument") for path in (ROOT / folder).rglob("*.py")
)
OURS = [path for path in MODULES if path.parts[0] == "traceview"]

FOUNDATION = ("errors", "units", "intervals", "kinds", "model", "report")
"""Each may import those before it (``report`` sits beside ``model``); everything else may import all of them."""

RESULTS = "report_links"
"""Results that ``report`` holds, in a module of their own."""

SIBLINGS = ("nsys", "analysis", "render")
"""Packages that know nothing of each other, but that a renderer may name what a result is made of."""

BORROWED = {
    "render/check_json.py": {"analysis.budget.worst"},
    "render/check_layout.py": {"analysis.budget.worst"},
    "render/figure_timeline.py": {"analysis.timeline_merge.merge_boxes", "analysis.timeline_merge.merge_holes"},
    "render/html_diff.py": {"analysis.timeline_pair.under_each_other"},
    "render/perfetto.py": {"analysis.events.pair_waits"},
}
"""Functions of analyses that renderers call although they should be handed the result; let it shrink, not grow."""

FORBIDDEN_NAMES = {"utils", "util", "common", "helpers", "helper", "core", "base", "misc", "manager", "managers"}
NSIGHT_NAMES = re.compile(
    r"CUPTI_|\bENUM_C|TARGET_INFO_|META_DATA_|StringIds|NVTX_EVENTS|CUDA_CALLCHAINS|"
    r"\b(?:correlationId|globalTid|globalPid|nameId|eventClass|callchainId|deviceId|contextId|streamId|greenContextId|"
    r"demangledName|shortName|copyKind|srcKind|dstKind|copyCount|syncType|eventSyncId|textId|domainId|migrationCause)\b"
)
LONGEST_MODULE = 300


@cache
def text(path: Path) -> str:
    """Return a module's source."""
    return (ROOT / path).read_text()


def imports(path: Path, *, types: bool = True) -> list[str]:
    """Return the dotted names that a module imports; ``types`` includes those that only annotations need."""
    return [name if "." in name else f"{name}." for name in _imports_below(ast.parse(text(path)), path.parent, types)]


def _imports_below(node: ast.AST, package: Path, types: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
            if types:
                yield from _imports_below(ast.Module(child.body, []), package, types)
        elif isinstance(child, ast.Import):
            yield from (name.name for name in child.names)
        elif isinstance(child, ast.ImportFrom):
            origin = child.module or ""
            if child.level:
                parents = package.parts[: len(package.parts) + 1 - child.level]
                origin = ".".join((*parents, *([origin] if origin else [])))
            yield from (f"{origin}.{name.name}" for name in child.names)
        else:
            yield from _imports_below(child, package, types)


def parts_used(path: Path, *, types: bool = True) -> set[str]:
    """Return the modules and packages right below traceview that a module imports from."""
    found = [name.split(".") for name in imports(path, types=types)]
    return {name[1] for name in found if name[0] == "traceview" and name[1] in PARTS}


PARTS = {path.parts[1].removesuffix(".py") for path in OURS if path.parts[1] != "__init__.py"}


def test_there_is_something_to_check() -> None:
    """Otherwise a moved folder would turn every rule below into one that nothing can break."""
    assert {*FOUNDATION, *SIBLINGS} <= PARTS
    assert parts_used(Path("traceview/nsys/reader.py")) >= {"nsys", "model", "errors"}
    assert NSIGHT_NAMES.search(text(Path("traceview/nsys/schema.py")))


def test_modules_are_at_most_300_lines_long() -> None:
    lengths = {str(path): len(text(path).splitlines()) for path in MODULES}
    assert {path: length for path, length in lengths.items() if length > LONGEST_MODULE} == {}


def test_files_say_in_their_names_what_they_are_about() -> None:
    assert [str(path) for path in MODULES if FORBIDDEN_NAMES & {*path.parent.parts, path.stem}] == []


def test_every_folder_of_code_is_installed() -> None:
    """setuptools takes the folders that are listed, and leaves out the others without a word."""
    listed = re.search(r"^packages = \[\n(.*?)^\]", (ROOT / "pyproject.toml").read_text(), re.DOTALL | re.MULTILINE)
    assert listed
    assert set(re.findall(r'"([\w.]+)"', listed[1])) == {".".join(path.parent.parts) for path in MODULES}


def test_foreign_names_stop_at_the_reader() -> None:
    outside = [path for path in OURS if path.parts[1] != "nsys"]
    found = {str(path): NSIGHT_NAMES.findall(text(path)) for path in outside}
    assert {path: names for path, names in found.items() if names} == {}


def test_what_runs_inside_the_profiled_process_needs_nothing_of_the_analyzer() -> None:
    inside = [path for path in MODULES if path.parts[0] == "instrument"]
    assert [str(path) for path in inside if any(name.startswith("traceview.") for name in imports(path))] == []


def test_of_the_instrumentation_the_analyzer_knows_the_names_alone() -> None:
    found = {(str(path), name) for path in OURS for name in imports(path) if name.startswith("instrument.")}
    assert [pair for pair in found if pair[1].split(".")[1] != "naming"] == []


def test_the_contract_of_names_needs_the_standard_library_alone() -> None:
    found = {name.split(".")[0] for name in imports(Path("instrument/naming.py"))}
    assert found <= sys.stdlib_module_names


def test_the_foundation_rests_on_what_comes_before_it() -> None:
    for place, name in enumerate(FOUNDATION):
        allowed = {*FOUNDATION[: place + 1], *([RESULTS] if name == "report" else [])}
        assert parts_used(Path(f"traceview/{name}.py")) <= allowed, name


def test_reader_analyses_and_renderers_rest_on_the_foundation_and_themselves() -> None:
    for path in OURS:
        if path.parts[1] in SIBLINGS:
            allowed = {*FOUNDATION, RESULTS, path.parts[1], *(["analysis"] if path.parts[1] == "render" else [])}
            assert parts_used(path) <= allowed, path


def test_renderers_take_from_analyses_what_results_are_made_of_and_no_functions() -> None:
    borrowed: dict[str, set[str]] = {}
    for path in OURS:
        for name in imports(path, types=False):
            if path.parts[1] == "render" and name.startswith("traceview.analysis.") and name.split(".")[-1].islower():
                borrowed.setdefault(str(path.relative_to("traceview")), set()).add(name.removeprefix("traceview."))
    assert borrowed == BORROWED


def test_what_a_function_raises_its_docstring_says() -> None:
    """Commands are left out: their docstring is their help, and what they raise becomes a line and an exit code."""
    silent = []
    for path in MODULES:
        for function in [node for node in ast.walk(ast.parse(text(path))) if isinstance(node, ast.FunctionDef)]:
            raised = [one for one in ast.walk(function) if isinstance(one, ast.Raise) and isinstance(one.exc, ast.Call)]
            told = ast.get_docstring(function) or ""
            is_command = any("command(" in ast.unparse(one) for one in function.decorator_list)
            if raised and not is_command and not function.name.startswith("_") and "aise" not in told:
                silent.append(f"{path}: {function.name}")
    assert silent == []


def test_analyses_print_and_draw_nothing() -> None:
    for path in OURS:
        if path.parts[1] == "analysis":
            assert not {name.split(".")[0] for name in imports(path)} & {"rich", "click", "matplotlib"}, path
            calls = [node.func for node in ast.walk(ast.parse(text(path))) if isinstance(node, ast.Call)]
            assert "print" not in [function.id for function in calls if isinstance(function, ast.Name)], path
