"""What ``python -m instrument run`` says before any GPU is needed."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from instrument.cli import cli, main
from instrument.workload.options import FAULTS, Options, options_from


def ends(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run the command line; return its exit code, output and errors."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0), *capsys.readouterr()


def test_a_dry_run_prints_the_plan(capsys) -> None:
    code, out, err = ends(capsys, "run", "--dry-run")
    assert (code, err) == (0, "")
    assert out == (
        "8 layers of 64 MiB, layout contiguous\n"
        "pieces: 1 per layer, 8 per forward, of 64 MiB each\n"
        "at 63.0 GB/s: load 1.065 ms and compute 1.172 ms per layer\n"
        "ideal makespan 10.439 ms, without overlap 17.896 ms\n"
    )


def test_a_dry_run_prints_json(capsys) -> None:
    _, out, _ = ends(capsys, "run", "--dry-run", "--json", "--layout", "page-first-direct", "--link-gbps", "50")
    plan = json.loads(out)
    assert plan["pieces_per_layer"] == 64 * 2**20 // (64 * 4096)
    assert plan["link_bytes_per_s"] == 50 * 10**9


def test_a_dry_run_imports_no_torch() -> None:
    script = "import sys; from instrument.cli import cli; cli(['run','--dry-run'], standalone_mode=False)\n"
    script += "assert not {'torch', 'triton', 'pandas'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


@pytest.mark.torch
def test_without_a_gpu_a_run_says_so_in_one_line(capsys) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    code, out, err = ends(capsys, "run")
    assert (code, out) == (1, "")
    assert err == "error: no CUDA device here: add --dry-run to see the plan, or run this on a machine with a GPU\n"


def test_without_torch_a_run_says_so_in_one_line(capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    code, _, err = ends(capsys, "run")
    assert code == 1
    assert err == "error: PyTorch is missing: pip install torch, or add --dry-run to see the plan\n"


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ("--page-tokens 32", "--layout"),
        ("--layout contiguous --token-bytes 512", "--layout"),
        ("--layout page-first --piece-kib 64", "--piece-kib"),
        ("--sm-blocks 4", "--mover sm"),
        ("--mover sm --pool pageable", "--pool pinned"),
        ("--huge-pages transparent", "--pool registered"),
        ("--late-us 5", "--fault late-submission"),
        ("--storage-io direct", "--storage FILE"),
        ("--no-stage", "--storage FILE"),
        ("--json", "--dry-run"),
        ("--link-gbps 50", "--dry-run"),
        ("--numa near", "local"),
        ("--layout page-first --page-tokens 63", "--page-tokens"),
    ],
)
def test_options_that_contradict_each_other_exit_2_with_advice(capsys, arguments, advice) -> None:
    code, out, err = ends(capsys, "run", *arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert advice in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        "--fault confusion",
        "--layers 0",
        "--layers 99999999999999999999",
        "--mib-per-layer 99999999999",
        "--no-such-option",
        "--mover hand",
        "--compute-ratio nan",
        "--compute-ratio inf",
        "--link-gbps nan",
        "--link-gbps inf",
        "--link-gbps 0",
        "--seed 99999999999999999999",
        "--fault",
        "extra",
    ],
)
def test_unknown_values_exit_2_in_one_line(capsys, arguments) -> None:
    code, out, err = ends(capsys, "run", "--dry-run", *arguments.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")
    assert ": see python -m instrument " in err
    assert err.endswith(" --help\n")


def test_without_a_command_the_help_is_shown(capsys) -> None:
    code, out, err = ends(capsys)
    assert code in (0, 2)
    assert "Commands:\n  attach " in out + err


def test_every_fault_is_a_choice_and_explained_in_the_help(capsys) -> None:
    _, out, _ = ends(capsys, "run", "--help")
    for name, does in FAULTS.items():
        assert f"  {name:<17} {does}\n" in out


def test_the_defaults_of_the_command_are_those_of_the_options() -> None:
    given = cli.commands["run"].make_context("run", []).params
    shape = options_from(given).shape
    assert options_from(given) == Options(shape=shape)
    assert (shape.layers, shape.layer_bytes, shape.layout) == (8, 64 << 20, "contiguous")


def test_parameters_tell_everything_but_paths() -> None:
    params = cli.commands["run"].make_context("run", ["--storage", "secret/place", "--layout", "page-first"]).params
    told = options_from(params).parameters()
    assert told["layout"] == "page-first"
    assert told["storage"] == {"io": "buffered", "staged": True}
    assert "secret" not in json.dumps(told)


def test_a_command_of_a_missing_module_is_not_there(capsys, monkeypatch) -> None:
    monkeypatch.setattr("instrument.cli.LAZY_COMMANDS", {"attach": "instrument.no_such_module"})
    code, out, _ = ends(capsys, "--help")
    assert code == 0
    assert "attach" not in out
    assert ends(capsys, "attach")[0] == 2
