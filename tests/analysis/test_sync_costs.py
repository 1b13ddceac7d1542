"""What a blocking call costs the device: which idle time, until when, and of whose launches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.accounting import account
from traceview.analysis.forwards import find_forwards
from traceview.analysis.sync_costs import find_idle_after

if TYPE_CHECKING:
    from pathlib import Path

OTHER_THREAD = 4799

Caused = list[tuple[int, int, int]]


def costs(builder: TraceBuilder, folder: Path, *names: str) -> tuple[dict[int, int], Caused]:
    """Return the cost of each call of some names by its start, and the idle time with the start of what caused it."""
    trace = read_back(builder, folder)
    (forward,) = find_forwards(trace)
    asked = [trace.names.index(name) for name in names or ("cudaDeviceSynchronize",)]
    call = np.flatnonzero(np.isin(trace.calls.name, asked))
    start = trace.calls.start[call]
    cost: dict[int, int] = {}
    caused: Caused = []
    for part in find_idle_after(trace, forward, account(trace, forward), call, start):
        begun = start[part.rows]
        cost |= dict(zip(begun.tolist(), part.cost.tolist(), strict=True))
        idle = (part.caused.start.tolist(), part.caused.end.tolist(), begun[part.by].tolist())
        caused += list(zip(*idle, strict=True))
    return cost, caused


def scene(*, launched: int = 270) -> TraceBuilder:
    """Write a forward that computes in [100, 200) and in [300, 400).

    Its host waits from 150 to 230 and launches the second kernel at 270.
    """
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    return builder.device_sync(call=(150, 230)).kernel(300, 400, call=(launched, launched + 10))


def test_a_call_costs_its_wait_and_the_restart_that_it_forces(tmp_path: Path) -> None:
    """Of the gap [200, 300) the wait takes 30 ns, the host 40 and the launch 30."""
    cost, caused = costs(scene(), tmp_path)
    assert cost == {150: 100}
    assert caused == [(200, 230, 150), (230, 270, 150), (270, 300, 150)]


def test_a_call_costs_nothing_before_it_began(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    builder.device_sync(call=(220, 230)).kernel(300, 400, call=(270, 280))
    assert costs(builder, tmp_path) == ({220: 80}, [(220, 230, 220), (230, 270, 220), (270, 300, 220)])


def test_a_call_before_all_compute_costs_nothing_of_what_was_queued_before(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    builder.kernel(220, 250, call=(61, 69)).device_sync(call=(150, 230))
    assert costs(builder, tmp_path) == ({150: 0}, [])


def test_the_next_blocking_call_takes_over(tmp_path: Path) -> None:
    cost, caused = costs(scene().device_sync(call=(240, 250)), tmp_path)
    assert cost == {150: 40, 240: 60}
    assert [start for *_, start in caused] == [150, 150, 240, 240, 240]
    assert sum(end - start for start, end, _ in caused) == 100


def test_gaps_of_what_was_launched_before_the_call_are_not_its_doing(tmp_path: Path) -> None:
    """The kernel in [210, 220) was queued before the call; what is idle before it is launch latency."""
    cost, caused = costs(scene().kernel(210, 220, call=(61, 69)), tmp_path)
    assert cost == {150: 80}
    assert caused[0] == (220, 230, 150)


def test_a_kernel_launched_as_the_call_begins_was_not_launched_before_it(tmp_path: Path) -> None:
    """Its launch took until 205, too long to queue it up behind the first kernel."""
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    builder.device_sync(call=(150, 230)).kernel(300, 400, call=(150, 205))
    assert costs(builder, tmp_path)[0] == {150: 100}


def test_a_call_costs_nothing_once_work_is_queued_up_again(tmp_path: Path) -> None:
    """The third kernel's launch ended at 295, while the second ran until 400: from then on the queue is full."""
    builder = scene().kernel(410, 450, call=(285, 295)).kernel(520, 530, call=(500, 505))
    cost, caused = costs(builder, tmp_path)
    assert cost == {150: 100}
    assert caused[-1] == (270, 300, 150)


def test_the_queue_is_not_full_when_a_launch_ends_as_its_predecessor_does(tmp_path: Path) -> None:
    builder = scene().kernel(410, 450, call=(390, 400)).kernel(520, 530, call=(500, 505))
    # the whole gaps [200, 300), [400, 410) and [450, 520): 50 of the host, 20 of launches
    assert costs(builder, tmp_path)[0] == {150: 100 + 10 + 70}


def test_the_predecessor_is_whatever_ends_last_before(tmp_path: Path) -> None:
    """Another stream runs until 480, so that the third kernel, launched by 460, was queued behind it."""
    builder = scene().kernel(310, 480, stream=9, call=(281, 284))
    builder.kernel(490, 500, call=(450, 460)).kernel(600, 610, call=(580, 585))
    # queued up from 400 on: the kernel on stream 9 was launched while the second had not begun
    assert costs(builder, tmp_path)[0] == {150: 100}


def test_work_that_was_queued_before_the_call_does_not_fill_the_queue(tmp_path: Path) -> None:
    """The kernel in [205, 210) was launched at 61 behind the first, long before the call."""
    cost, _ = costs(scene().kernel(205, 210, call=(61, 69)), tmp_path)
    assert cost == {150: 90}


def test_each_call_has_a_restart_of_its_own(tmp_path: Path) -> None:
    """After the first call the queue is full from 400 on, and empty again after the second, at 560."""
    builder = scene().kernel(400, 450, call=(285, 295)).device_sync(call=(420, 460))
    builder.kernel(500, 560, call=(480, 485)).kernel(565, 570, call=(490, 495)).kernel(600, 610, call=(580, 585))
    cost, caused = costs(builder, tmp_path)
    assert cost == {150: 100, 420: 50}
    assert caused[3:] == [(450, 460, 420), (460, 480, 420), (480, 500, 420)]


def test_only_some_causes_are_a_blocking_calls_doing(tmp_path: Path) -> None:
    """A kernel on another stream holds the second one up from 270 to 290: that is nobody's wait."""
    builder = scene().kernel(275, 290, name="transfer_kv_all_layer", stream=13, call=(235, 240))
    assert costs(builder, tmp_path)[0] == {150: 100 - 15}


def test_an_implicit_wait_costs_as_an_explicit_one_does(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    builder.api("cudaFree_v3020", 150, 230).kernel(300, 400, call=(270, 280))
    assert costs(builder, tmp_path, "cudaFree")[0] == {150: 100}


def two_threads() -> TraceBuilder:
    """Write a forward whose second kernel another thread launches."""
    builder = TraceBuilder().range("forward 0", 0, 1000).range("compute layer 0", 40, 70)
    builder.kernel(100, 200, call=(50, 60)).device_sync(call=(150, 230))
    builder.range("compute layer 1", 260, 290, thread=OTHER_THREAD)
    return builder.kernel(300, 400, call=(270, 280), thread=OTHER_THREAD)


def test_a_call_costs_nothing_of_what_another_thread_launched(tmp_path: Path) -> None:
    assert costs(two_threads(), tmp_path) == ({150: 0}, [])


def test_calls_of_two_threads_cost_what_each_thread_launched(tmp_path: Path) -> None:
    """The call at 240 is the other thread's: before its launch of 270 it explains the gap from its own start on."""
    builder = two_threads().device_sync(call=(240, 260), thread=OTHER_THREAD)
    builder.range("compute layer 0", 405, 430).kernel(450, 460, call=(420, 425))
    cost, caused = costs(builder, tmp_path)
    assert cost == {150: 50, 240: 60}
    assert sorted(caused) == [
        (240, 260, 240),
        (260, 270, 240),
        (270, 300, 240),
        (400, 420, 150),
        (420, 450, 150),
    ]


def test_another_thread_does_not_fill_a_threads_queue(tmp_path: Path) -> None:
    """The kernel at [400, 410) was launched in time, but not by the thread that waited."""
    builder = two_threads().device_sync(call=(240, 260), thread=OTHER_THREAD)
    builder.range("compute layer 0", 280, 300).kernel(400, 410, call=(285, 290))
    builder.range("compute layer 1", 415, 430, thread=OTHER_THREAD)
    builder.kernel(450, 460, call=(420, 425), thread=OTHER_THREAD)
    # its own thread launches again at 420, after the kernel before ended: 60, and the 40 of the gap [410, 450)
    assert costs(builder, tmp_path)[0] == {150: 0, 240: 60 + 40}


def test_what_nobody_is_known_to_have_launched_is_not_a_calls_doing(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).kernel(100, 200, call=(50, 60))
    assert costs(builder.device_sync(call=(150, 230)), tmp_path) == ({150: 0}, [])
