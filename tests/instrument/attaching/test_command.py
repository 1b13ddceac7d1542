"""``attach`` names a toy program's functions without touching it, or says why it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("wrapt", reason="wrapt is not installed")

ROOT = Path(__file__).parents[3]

POOL = """
    import abc
    from collections import OrderedDict

    class Base:
        def release(self, layer): return layer

    class Pool(Base):
        def __init__(self, number=7): self.number = number
        def load(self, layer_id, *, io="kernel"): return layer_id * 2
        @staticmethod
        def size(layer, scale=5): return layer * scale

    class Table(OrderedDict):
        def fetch(self, key): return key

    if True:
        def late(batch): return batch

    made_at_import = len
"""

SERVE = """
    import sys
    import instrument_of_the_program, instrument
    from toy.pool import Pool
    print(Pool().load(3), instrument.WHOSE, "site" if any("attaching" in path for path in sys.path) else "clean")
    sys.exit(5)
"""

NVTX = """
    import atexit, os, numpy, sys
    class Domain:
        handle = "live"
        log = []
        def get_event_attributes(self, message, payload=None): return message
        def push_range(self, attributes): self.log.append(">" + attributes)
        def pop_range(self): self.log.append("<")
    def get_domain(name): return Domain()
    def write():
        if not hasattr(sys, "hidden_has_run"): Domain.log.append("the hidden sitecustomize has not run")
        with open(os.environ["RANGES_LOG"], "a") as file:
            file.write("".join(line + "\\n" for line in Domain.log))
    atexit.register(write)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A toy program, whose Pythons find an ``nvtx`` that writes what a profiler would hear, and a sitecustomize."""
    files = {
        "app/toy/__init__.py": "raise_if_imported_by_the_check = 1",
        "app/toy/pool.py": POOL,
        "app/serve.py": SERVE,
        "app/instrument.py": "WHOSE = 'own'",
        "app/instrument_of_the_program.py": "",
        "app/toy/__main__.py": "import sys; from toy.pool import Pool; Pool().load(8); sys.exit(6)",
        "hidden/nvtx.py": NVTX,
        "hidden/sitecustomize.py": "import sys, numpy; sys.hidden_has_run = True",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return tmp_path


def attach(program: Path, *arguments: str, cwd: str = "app") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(program / "hidden"), "RANGES_LOG": str(program / "log")}
    environment.pop("NVTX_INJECTION64_PATH", None)
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from instrument.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", start, "attach", *arguments]
    return subprocess.run(
        command, cwd=program / cwd, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def log(program: Path) -> list[str]:
    path = program / "log"
    return path.read_text().split("\n")[:-1] if path.exists() else []


LOAD = ("--wrap", "toy.pool:Pool.load=load layer {layer_id}")


def test_a_script_is_named_and_otherwise_unchanged(program: Path) -> None:
    """Exit code and output are the program's, its module named instrument is its own, its path is clean."""
    done = attach(program, *LOAD, "--", sys.executable, "serve.py")
    assert (done.returncode, done.stdout, done.stderr) == (5, "6 own clean\n", "")
    assert log(program) == [">load layer 3", "<"]


def test_a_module_started_by_dash_m_and_two_wraps(program: Path) -> None:
    wraps = (*LOAD, "--wrap", "toy.pool:Pool.__init__=pool {number}")
    done = attach(program, *wraps, sys.executable, "-m", "toy")
    assert (done.returncode, done.stderr) == (6, "")
    assert log(program) == [">pool 7", "<", ">load layer 8", "<"]


def test_a_bare_script_gets_this_python(program: Path) -> None:
    assert attach(program, *LOAD, "serve.py").returncode == 5


def test_child_pythons_are_named_and_isolated_ones_run_as_they_are(program: Path) -> None:
    """The middle process imports nothing to wrap; -S and -I read no sitecustomize, so those run without ranges."""
    (program / "app/parent.py").write_text(
        "import subprocess, sys\n"
        "code = 'import sys; sys.path.insert(0, \".\"); import toy.pool; print(toy.pool.Pool().load(4))'\n"
        "for flags in ([], ['-S'], ['-I']): subprocess.run([sys.executable, *flags, '-c', code], check=True)\n"
    )
    done = attach(program, *LOAD, "--", sys.executable, "parent.py")
    assert (done.returncode, done.stdout, done.stderr) == (0, "8\n8\n8\n", "")
    assert log(program) == [">load layer 4", "<"]


def test_spawned_workers_are_named(program: Path) -> None:
    (program / "app/pooled.py").write_text(
        "import multiprocessing\n"
        "from toy.pool import Pool\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=Pool().load, args=(6,))\n"
        "    worker.start(); worker.join()\n"
    )
    done = attach(program, *LOAD, "--", sys.executable, "pooled.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert log(program).count(">load layer 6") == 1


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("os:getcwd=x", "import os; os.getcwd()"),
        ("builtins:len=x", "len('')"),
        ("numpy:nan_to_num=x", "import numpy; numpy.nan_to_num(3)"),
        ("zipfile:is_zipfile=x", "import zipfile; zipfile.is_zipfile('none')"),
    ],
)
def test_what_python_or_the_wrapping_itself_imports_is_named_and_loaded_once(
    program: Path, spec: str, code: str
) -> None:
    """NumPy warns when it is loaded a second time."""
    done = attach(program, "--wrap", spec, "--", sys.executable, "-W", "error", "-c", code)
    assert done.returncode == 0, done.stderr
    assert log(program) == [">x", "<"]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("toy.pool:Pool.laod=x", "error: toy.pool has no Pool.laod; near matches: Pool.load"),
        ("toy.pool:lat=x", "error: toy.pool has no lat; near matches: late"),
        ("toy.pol:Pool.load=x", "error: there is no module toy.pol; near matches: pool"),
        (
            "toy.pool:Pool.load={layer}",
            "error: toy.pool:Pool.load has no parameter 'layer' (it has self, layer_id, io)",
        ),
        ("toy.pool:Pool=x", "error: toy.pool:Pool is a class, so name one of its methods: Pool.__init__, Pool.load"),
        ("toy.pool:Pool.load", "error: --wrap: 'toy.pool:Pool.load' is not of the form"),
        ("toy.pool:Pool.load={a!r}", "error: --wrap: '{a!r}' is not an argument with plain attributes"),
        ("__main__:run=x", "error: __main__ is the program itself, which is not imported"),
    ],
)
def test_what_cannot_be_wrapped_ends_in_one_line_before_the_program_starts(
    program: Path, spec: str, message: str
) -> None:
    done = attach(program, "--wrap", spec, "--", sys.executable, "serve.py")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "error: nothing to wrap: add --wrap MODULE:NAME=TEXT or --preset accelerate-offload|sglang-hicache"),
        (LOAD, "error: there is nothing to run: end with -- python your_program.py"),
        ((*LOAD, "no-such-program"), "error: cannot start no-such-program: no such program on PATH"),
        ((*LOAD, "--", sys.executable, "-I", "serve.py"), "error: python -I ignores what attach sets"),
        ((*LOAD, "--", sys.executable, "-sS", "serve.py"), "error: python -S ignores what attach sets"),
        ((*LOAD, "--", "./python3", "serve.py"), "error: cannot start ./python3: no such program"),
    ],
)
def test_a_command_that_cannot_work_ends_in_one_line(program: Path, arguments: tuple[str, ...], message: str) -> None:
    done = attach(program, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


def test_a_missing_preset_package_is_told_once_with_the_release_it_fits(program: Path) -> None:
    done = attach(program, "--preset", "sglang-hicache", "--", sys.executable, "-c", "print('started')")
    if "sglang" in sys.modules or done.returncode == 0:
        pytest.skip("sglang is installed here")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: there is no module sglang (preset sglang-hicache fits sglang 0.5.23; looked with"
    )


def test_what_only_an_import_can_show_is_noted_then_told_and_the_program_goes_on(program: Path) -> None:
    wraps = ("--wrap", "toy.pool:Table.fetsh=x", "--wrap", "toy.pool:made_at_import=x", *LOAD)
    done = attach(program, *wraps, "--", sys.executable, "serve.py")
    assert (done.returncode, done.stdout) == (5, "6 own clean\n")
    noted, noted_too, told = done.stderr.splitlines()
    assert noted == "note: only its import can tell whether toy.pool has Table.fetsh; near matches: Table.fetch"
    assert "toy.pool has made_at_import" in noted_too
    assert told.startswith(
        "traceview attach: toy.pool has no Table.fetsh (near matches: Table.fetch): it runs without 'x'"
    )
    assert log(program) == [">load layer 3", "<"]


def test_the_check_imports_nothing_and_can_be_left_out(program: Path) -> None:
    (program / "app/toy/__init__.py").write_text("raise SystemExit('imported')\n")
    assert attach(program, *LOAD, "--dry-run", "--", sys.executable, "serve.py").returncode == 0
    done = attach(program, "--wrap", "toy.none:f=x", "--no-check", "--", sys.executable, "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")


def test_a_dry_run_prints_the_wraps(program: Path) -> None:
    done = attach(program, *LOAD, "--dry-run", "--", sys.executable, "serve.py")
    assert (done.returncode, done.stdout) == (0, "toy.pool:Pool.load=load layer {layer_id}\n")
