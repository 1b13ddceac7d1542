"""What a user says about the machine: topology, PCIe link, metrics."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from metric_rows import RX, gpu_samples
from trace_builder import TraceBuilder, layered_forward

from traceview.cli import run

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A forward that loads 2 x 50 MB at 50 GB/s, sampled, on a GPU of which nothing says how fast its link is."""
    loads, computes = [[(MS, 2 * MS)], [(2 * MS, 3 * MS)]], [[(3 * MS, 4 * MS)], [(4 * MS, 5 * MS)]]
    builder = layered_forward(TraceBuilder(), start=0, loads=loads, computes=computes, n_bytes=50 * MS)
    percent = {step * MS // 10: 85 if 10 < step <= 30 else 0 for step in range(60)}
    return gpu_samples(builder, RX, percent).write(tmp_path / "trace.sqlite")


def report(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    with pytest.raises(SystemExit) as stopped:
        run(["report", *map(str, arguments), "--format", "json"])
    assert stopped.value.code == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    with pytest.raises(SystemExit) as stopped:
        run(["report", *map(str, arguments)])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_the_link_is_told_by_generation_and_lanes(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [lane] = report(capsys, trace, "--pcie", "5x16")["lanes"]
    assert (lane["ceiling_from"], lane["verdict"]) == ("option", "full_rate")
    assert lane["ceiling"] == pytest.approx(63.015, abs=0.001)


def test_or_by_what_it_carries(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [lane] = report(capsys, trace, "--link-gbps", "121")["lanes"]
    assert (lane["ceiling"], lane["verdict"]) == (121.0, "low_rate")


def test_without_either_it_is_the_best_copy(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [lane] = report(capsys, trace)["lanes"]
    assert (lane["ceiling"], lane["ceiling_from"]) == (pytest.approx(50.0), "observed")


def test_metrics_are_read_when_asked_for(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = report(capsys, trace, "--metrics", "--pcie", "5x16")
    assert [entry["forward"] for entry in made["inbound"]] == [0]
    assert report(capsys, trace, "--pcie", "5x16")["inbound"] == []


def test_a_topology_is_read_from_a_file(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "topology.txt"
    saved.write_text("\tGPU0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t0-15\t3\n")
    [lane] = report(capsys, trace, "--topology", saved)["lanes"]
    assert lane["links"] == ["DRAM[3] out", "RC[3] down", "GPU 0 in"]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--pcie", "16", "5x16"),
        ("--pcie", "9x16", "no PCIe 9.0"),
        ("--pcie", "5x17", "17 lanes"),
        ("--pcie", "5x0", "0 lanes"),
        ("--link-gbps", "0", "--link-gbps"),
        ("--link-gbps", "fast", "--link-gbps"),
        ("--topology", "missing.txt", "missing.txt"),
    ],
)
def test_wrong_usage_is_told_in_one_line(
    option: str, value: str, words: str, trace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in complaint(capsys, trace, option, value)


def test_a_file_without_a_matrix_is_refused(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = tmp_path / "other.txt"
    saved.write_bytes(b"\xff\xfe no matrix\n")
    assert "nvidia-smi topo -m > topology.txt" in complaint(capsys, trace, "--topology", saved)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_topology_is_read_as_any_shell_saves_it(
    encoding: str, trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = "\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\r\nGPU0\t X \t0-15\t3\t\tN/A\r\n"
    (tmp_path / "topology.txt").write_bytes(matrix.encode(encoding))
    [lane] = report(capsys, trace, "--topology", tmp_path / "topology.txt")["lanes"]
    assert lane["links"] == ["DRAM[3] out", "RC[3] down", "GPU 0 in"]
