"""Ranks side by side, from files as nsys writes them to the page."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from trace_builder import TraceBuilder, layered_forward

from traceview.cli import main
from traceview.commands.fleet import find_traces
from traceview.errors import UsageError

STEP = 10_000_000


def write_rank(path, *, late: int = 0, layer: int = 1, session: int = 1_700_000_000_000_000_000):
    """Write three forwards of two layers; ``late`` ns pass before the compute of ``layer`` begins."""
    builder = TraceBuilder()
    for number in range(3):
        at = number * STEP
        computes = [[(at + 2_000_000, at + 4_000_000)], [(at + 4_010_000, at + 6_000_000)]]
        for later in range(layer, 2):
            computes[later] = [(begin + late, end + late) for begin, end in computes[later]]
        loads = [[(at + 1_000_000, at + 1_900_000)], [(at + 2_000_000, at + 3_900_000 + late)]]
        layered_forward(builder, start=at, loads=loads, computes=computes, number=number)
    builder.row("TARGET_INFO_SESSION_START_TIME", utcEpochNs=session)
    return builder.write(path)


@pytest.fixture
def ranks(tmp_path):
    for number in range(4):
        write_rank(tmp_path / f"run_rank{number}.sqlite", late=800_000 if number == 2 else 0)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["fleet", *map(str, arguments), "--warmup", "0"], standalone_mode=False)


def read(*arguments):
    result = run(*arguments, "--format", "json")
    assert result.exception is None, result.output
    return json.loads(result.output)


def test_the_late_rank_is_named_with_its_layer_and_category(ranks):
    found = read(ranks, "--jobs", 2)
    assert [rank["label"] for rank in found["ranks"]] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    (late,) = found["stragglers"]
    assert (late["label"], late["layer"], late["category"]) == ("rank 2", 1, "load_copy")
    assert late["late_ns"] == late["layer_ns"] == 800_000


def test_the_page_says_the_same_in_words(ranks):
    text = " ".join(run(ranks).output.split())
    assert text.startswith("rank 2 is late by 800 µs (16 %): load_copy +700 µs, most before layer 1 (+800 µs).")
    assert "4 ranks" in text


@pytest.mark.parametrize("style", ["markdown", "html"])
def test_other_formats_hold_every_rank(ranks, style):
    text = run(ranks, "--format", style).output
    assert all(f"rank {number}" in text for number in range(4))


def test_ranks_alike_make_no_straggler(tmp_path):
    for number in range(3):
        write_rank(tmp_path / f"rank{number}.sqlite", late=1_000 * number)
    assert read(tmp_path)["stragglers"] == []
    assert run(tmp_path).output.startswith("No rank of 3 is late.")


def test_a_broken_file_is_a_row_with_its_error(ranks):
    (ranks / "run_rank9.sqlite").write_bytes(b"no database")
    rows = read(ranks)["ranks"]
    assert [row.get("error") for row in rows][:4] == [None] * 4
    assert rows[4]["label"] == "rank 9"
    assert rows[4]["error"].startswith("run_rank9.sqlite is not an SQLite file")
    assert "5 ranks · 1 could not be read" in run(ranks).output


def test_only_broken_files_are_a_failure(tmp_path):
    (tmp_path / "rank0.sqlite").write_bytes(b"no database")
    assert run(tmp_path).return_value == 1


def test_clocks_are_aligned_by_the_start_of_the_session(tmp_path):
    epoch = 1_700_000_000_000_000_000
    write_rank(tmp_path / "rank0.sqlite", session=epoch)
    write_rank(tmp_path / "rank1.sqlite", session=epoch + 3_000)
    alignment = read(tmp_path)["alignment"]
    assert alignment == {"forwards": 3, "skew_ns": 3_000, "late_ns": {"rank 0": 0, "rank 1": 3_000}}


def test_ranks_of_different_runs_are_not_aligned(tmp_path):
    write_rank(tmp_path / "rank0.sqlite")
    write_rank(tmp_path / "rank1.sqlite", session=1_800_000_000_000_000_000)
    found = read(tmp_path)
    assert found["alignment"] is None
    assert "do not overlap" in found["unaligned"]


def test_an_export_stands_for_its_report(tmp_path):
    for name in ("rank0.sqlite", "rank0.nsys-rep", "rank1.nsys-rep", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in find_traces([str(tmp_path)])] == ["rank0.sqlite", "rank1.nsys-rep"]
    assert [path.name for path in find_traces([str(tmp_path / "rank*"), str(tmp_path)])] == [
        "rank0.sqlite",
        "rank1.nsys-rep",
    ]


def test_a_name_that_stands_for_nothing_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="holds no trace"):
        find_traces([str(tmp_path / "nothing*")])


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same(ranks):
    distributed = pytest.importorskip("dask.distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        spread = read(ranks, "--dask", cluster.scheduler_address)
    here = read(ranks.resolve())
    assert spread == here
