"""When threads submitted loads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.forwards import ForwardOptions, find_forwards

if TYPE_CHECKING:
    from pathlib import Path

OTHER_THREAD = 4799

Stretch = tuple[int, int, int]


def submissions(builder: TraceBuilder, folder: Path, layers_from: str | None = None) -> list[Stretch]:
    """Return the thread, begin and end of each stretch in which loads were submitted."""
    trace = read_back(builder, folder)
    found = find_forwards(trace, ForwardOptions(layers_from=layers_from))[0].submissions
    threads = [trace.threads[index].number for index in found.thread.tolist()]
    return list(zip(threads, found.start.tolist(), found.end.tolist(), strict=True))


def test_a_named_load_is_submitted_while_its_range_is_open(tmp_path: Path) -> None:
    builder = TraceBuilder().range("forward 0", 0, 1000).range("load layer 0", 10, 30)
    builder.copy(100, 110, call=(15, 16)).range("load layer 1", 40, 60, thread=OTHER_THREAD)
    builder.copy(110, 120, call=(45, 46), thread=OTHER_THREAD)
    builder.range("compute layer 0", 70, 90).kernel(120, 130, call=(75, 76))
    assert submissions(builder, tmp_path) == [(4711, 10, 30), (OTHER_THREAD, 40, 60)]


def test_an_unnamed_load_is_submitted_from_its_first_call_to_its_last(tmp_path: Path) -> None:
    """Layer 0 in [10, 26), layer 1 in [60, 66): between them the thread launched compute."""
    builder = TraceBuilder().range("forward 0", 0, 1000)
    builder.copy(100, 110, "h2d", 1 << 20, call=(10, 16)).copy(110, 120, "h2d", 1 << 20, call=(20, 26))
    builder.record(1, stream=13, call=(28, 29), sync=1).wait(1, stream=7, call=(30, 31), sync=1)
    builder.kernel(130, 140, call=(40, 46))
    builder.copy(140, 150, "h2d", 1 << 20, call=(60, 66))
    builder.record(2, stream=13, call=(68, 69), sync=2).wait(2, stream=7, call=(70, 71), sync=2)
    builder.kernel(160, 170, call=(80, 86))
    assert submissions(builder, tmp_path, "events") == [(4711, 10, 26), (4711, 60, 66)]
