"""Many files: in processes of their own or on a Dask cluster, none lost silently."""

from __future__ import annotations

import pytest
import worker_tasks

from traceview.errors import UsageError
from traceview.workers import Outcome, run_here, run_on_dask


def outcomes(task, items, jobs=2):
    return sorted(run_here(task, items, jobs), key=lambda outcome: outcome.item)


def test_every_item_has_one_outcome():
    assert outcomes(worker_tasks.double, range(7)) == [Outcome(number, 2 * number, None) for number in range(7)]


def test_nothing_to_do_ends_at_once():
    assert outcomes(worker_tasks.double, []) == []


def test_an_error_of_one_item_is_its_outcome():
    (found,) = outcomes(worker_tasks.fail, [5])
    assert found == Outcome(5, None, "5 cannot be read (try another)")


def test_a_surprise_is_told_and_costs_nobody_else():
    assert [outcome.error for outcome in outcomes(worker_tasks.surprise, [1, 2])] == [
        f"unexpected RuntimeError: surprised by {number}; please report this" for number in (1, 2)
    ]


def test_a_killed_worker_loses_its_own_item_only_and_says_so():
    found = outcomes(worker_tasks.die_on_three, range(6))
    assert [outcome.result for outcome in found] == [0, 2, 4, None, 8, 10]
    assert "was killed (signal 9)" in str(found[3].error)


def test_a_worker_that_was_killed_once_is_tried_again(tmp_path):
    marker = str(tmp_path / "marker")
    assert outcomes(worker_tasks.die_once, [marker]) == [Outcome(marker, marker, None)]


def test_each_file_has_a_process_of_its_own():
    assert len({outcome.result for outcome in outcomes(worker_tasks.own_process, range(4))}) == 4


def test_nobody_at_the_address_is_one_clear_error():
    pytest.importorskip("dask.distributed")
    with pytest.raises(UsageError, match="no Dask scheduler answers"):
        list(run_on_dask(worker_tasks.double, [1], "tcp://127.0.0.1:9"))


@pytest.mark.slow
def test_a_killed_dask_worker_loses_its_own_item_only_and_says_so():
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("dask.distributed")
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        # one worker with a thread for every item: its death is held against all of them
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=6, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
    ):
        found = sorted(
            run_on_dask(worker_tasks.die_on_three, range(6), cluster.scheduler_address), key=lambda one: one.item
        )
    assert [outcome.result for outcome in found] == [0, 2, 4, None, 8, 10]
    assert "Dask worker was lost" in str(found[3].error)
