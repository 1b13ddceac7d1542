"""The workload on a real GPU: every byte right for every mover, layout and pool, and a healthy run that is healthy."""

from __future__ import annotations

import json
from statistics import median

import pytest

from instrument.cli import main
from instrument.workload.options import FAULTS, MOVERS, POOLS
from instrument.workload.plan import LAYOUTS, ideal_ns

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here"),
]

SMALL = "--layers 3 --mib-per-layer 4 --forwards 2 --warmup 1"
PAGES = "--page-tokens 16 --token-bytes 2048"


def line_of(capsys: pytest.CaptureFixture[str], arguments: str) -> dict:
    """Run the workload through its command; return the JSON line."""
    with pytest.raises(SystemExit) as end:
        main(["run", *arguments.split()])
    out, err = capsys.readouterr()
    assert end.value.code == 0, err
    return json.loads(out.splitlines()[-1])


@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("layout", sorted(LAYOUTS))
@pytest.mark.parametrize("mover", MOVERS)
def test_every_byte_arrives(capsys, mover, layout, pool) -> None:
    if (mover, pool) == ("sm", "pageable"):
        pytest.skip("a kernel cannot read pageable memory")
    paging = "--piece-kib 100" if layout == "contiguous" else PAGES
    line = line_of(capsys, f"{SMALL} --mover {mover} --layout {layout} --pool {pool} {paging}")
    assert line["verified"]
    assert [check["wrong_bytes"] for check in line["verification"]] == [0, 0, 0]
    assert line["bytes"]["pieces_per_layer"] == {"contiguous": 41, "page-first": 2048}.get(layout, 128)


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_every_fault_still_moves_the_right_bytes(capsys, fault) -> None:
    line = line_of(capsys, f"{SMALL} --fault {fault}")
    assert line["verified"]
    assert [forward["number"] for forward in line["forwards"]] == [0, 1]


@pytest.mark.parametrize("options", ["--writeback", "--writeback --fault thread", "--pool registered --numa local"])
def test_partners_and_binding_leave_the_bytes_right(capsys, options) -> None:
    assert line_of(capsys, f"{SMALL} {options}")["verified"]


@pytest.mark.parametrize("options", ["", "--storage-io direct", "--no-stage", "--layout page-first " + PAGES])
def test_storage_brings_the_right_bytes(capsys, tmp_path, options) -> None:
    line = line_of(capsys, f"{SMALL} --storage {tmp_path / 'kv'} {options}")
    assert line["verified"]
    assert all(forward["storage_read_ns"] > 0 for forward in line["forwards"])


def test_bytes_that_were_never_loaded_fail_the_run(capsys, monkeypatch) -> None:
    from instrument.workload import run

    monkeypatch.setattr(run, "mover", lambda _route: lambda _layer: None)
    with pytest.raises(SystemExit) as end:
        main(["run", *SMALL.split()])
    out, err = capsys.readouterr()
    assert end.value.code == 1
    assert json.loads(out.splitlines()[-1])["verified"] is False
    assert err == "error: wrong bytes arrived on the device: see 'verification' in the line above\n"


def test_the_healthy_run_is_healthy(capsys) -> None:
    line = line_of(capsys, "--forwards 5")

    def efficiency(forward: dict) -> float:
        loads, computes = ([layer[key] for layer in forward["layers"]] for key in ("load_ns", "compute_ns"))
        return ideal_ns(loads, computes) / forward["makespan_ns"]

    assert median(efficiency(forward) for forward in line["forwards"]) >= 0.97
    rate = median(forward["load_span_bytes_per_s"] for forward in line["forwards"])
    assert rate >= 0.95 * line["plain_copy"]["bytes_per_s"]
