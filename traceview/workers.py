"""Runs one task per file in processes of its own, or on a Dask cluster, and loses none silently.

A process serves one file and ends, so memory is bounded by the number of processes at a time; one that is killed takes
no other file's result with it, is tried once more, and then is told of.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from traceview.errors import TraceviewError, UsageError
from traceview.signals import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

Item = TypeVar("Item")
Result = TypeVar("Result")

TRIES = 2
_PRELOADED = ["traceview.reading", "traceview.analysis.report"]
_CONNECT_SECONDS = 10
_KILLED = "its worker process was killed ({}): not enough memory? try --jobs 1"


@dataclass(frozen=True)
class Outcome(Generic[Item, Result]):
    """What came of one item: a result, or one line that says why there is none."""

    item: Item
    result: Result | None
    error: str | None


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_here(task: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Outcome[Item, Result]]:
    """Yield the outcome of each item as it comes, from at most ``jobs`` processes at a time."""
    context = _context()
    waiting = deque((item, 1) for item in items)
    running: dict[Connection, tuple[BaseProcess, Item, int]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                item, attempt = waiting.popleft()
                reader, writer = context.Pipe(duplex=False)
                process = context.Process(target=_serve, args=(task, item, writer), daemon=True)  # type: ignore[attr-defined]
                with uninterrupted():
                    process.start()
                    # the child holds the only writing end now, so that its death is the end of the file
                    writer.close()
                    running[reader] = (process, item, attempt)
            for ready in _ready(running):
                process, item, attempt = running.pop(ready)
                outcome = _receive(ready, process, item)
                if outcome is not None:
                    yield outcome
                elif attempt < TRIES:
                    waiting.append((item, attempt + 1))
                else:
                    yield Outcome(item, None, _KILLED.format(_reason(process)))
    finally:
        for process, *_ in running.values():
            process.kill()
            process.join()


def run_on_dask(
    task: Callable[[Item], Result], items: Sequence[Item], scheduler: str
) -> Iterator[Outcome[Item, Result]]:
    """Yield the outcome of each item as it comes from a Dask cluster, whose workers see the same files.

    Dask holds a worker's death against every task the worker had been given, so the items lost with one are run again
    one at a time: only what is lost alone is told of. Raises ``UsageError`` where ``dask.distributed`` is missing or no
    scheduler answers.
    """
    try:
        from dask.distributed import Client, KilledWorker, as_completed  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise UsageError("--dask needs dask.distributed", "pip install 'traceview[dask]'") from None
    try:
        client = Client(scheduler, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(
            f"no Dask scheduler answers at {scheduler}: {error}", "start one with: dask scheduler"
        ) from None
    with client:

        def submit(item: Item) -> Any:
            return client.submit(_attempt, task, item, pure=False, retries=TRIES - 1)

        futures = {submit(item): item for item in items}
        suspects = []
        for future in as_completed(futures, loop=client.loop):
            if future.status == "error" and isinstance(future.exception(), KilledWorker):
                suspects.append(futures[future])
            else:
                yield _of_future(future, futures[future])
        for item in suspects:
            yield _of_future(submit(item), item)


def _of_future(future: Any, item: Item) -> Outcome[Item, Any]:
    """Wait for one item's Dask future and return its outcome."""
    failure = future.exception()
    if failure is not None:
        return Outcome(item, None, f"its Dask worker was lost: {failure}")
    result, message = future.result()
    return Outcome(item, result, message)


def _context() -> BaseContext:
    """Return the kind of processes to start: from a server that has imported the reader, where the system has it."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    # its start ends with SIGINT let through again, so it comes before the server is started without
    resource_tracker.ensure_running()
    return context


def _ready(running: Iterable[Connection]) -> list[Connection]:
    """Return the connections on which something came, or whose process died."""
    ready: Any = wait(list(running))
    return list(ready)


def _serve(task: Callable[[Any], Any], item: Any, writer: Connection) -> None:
    """Run the task in this process and send what comes of it, unless who wanted it is gone."""
    with suppress(BrokenPipeError), writer:
        writer.send(_attempt(task, item))


def _attempt(task: Callable[[Item], Result], item: Item) -> tuple[Result | None, str | None]:
    """Return a task's result, or one line that says why there is none."""
    try:
        return task(item), None
    except TraceviewError as error:
        return None, str(error)
    except MemoryError:
        return None, "not enough memory for this file: try --jobs 1"
    except Exception as error:  # one file's surprise must not cost the others their rows
        return None, f"unexpected {type(error).__name__}: {error}; please report this"


def _receive(reader: Connection, process: BaseProcess, item: Item) -> Outcome[Item, Any] | None:
    """Return what a process sent, or None where it died before it could."""
    try:
        result, message = reader.recv()
    except (EOFError, OSError):
        process.join()
        return None
    finally:
        reader.close()
    process.join()
    return Outcome(item, result, message)


def _reason(process: BaseProcess) -> str:
    code = process.exitcode
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
