"""Writes small SQLite files in the shape of Nsight Systems exports, one event a line.

::

    TraceBuilder().kernel(20, 30, call=(11, 12)).copy(10, 20, "h2d", 64, call=(5, 6)).write(path)

Times are integer ns. What the chosen layout cannot hold is left out, as an older nsys would have done. Work on the
device takes these options beside its own arguments: ``call=(start, end)`` also writes the API call that submits it
(without one it has no launch), ``api`` names that call, ``thread`` and ``process`` make it; ``device``, ``context``
and ``green`` place the stream; ``correlation`` sets the id instead of a fresh one; any other option is a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from export_writer import PROCESS, ExportWriter, global_pid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    Call = tuple[int, int]

INVALID = 4294967295
COPY_KINDS = {"h2d": 1, "d2h": 2, "h2a": 3, "a2h": 4, "a2a": 5, "a2d": 6, "d2a": 7, "d2d": 8, "h2h": 9, "p2p": 10}
HOST_MEMORIES = {"pageable": 0, "pinned": 1, "managed": 4, "unknown": 7}
_DEVICE_MEMORY = 2
_SHAPE = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
_PUSH_POP, _MARK, _DOMAIN = 59, 34, 75


class TraceBuilder(ExportWriter):
    """Collects the events of one export; every method returns the builder."""

    def __init__(self, layout: str = "3.20.3", *, process: int = PROCESS, lazy: bool = True) -> None:
        super().__init__(layout, process=process, lazy=lazy)
        self._domains: dict[tuple[int, str], int] = {}
        self._correlation = 100

    # host side

    def api(
        self,
        name: str,
        start: int,
        end: int,
        *,
        thread: int | None = None,
        process: int | None = None,
        correlation: int | None = None,
        **columns: Any,
    ) -> Self:
        """Add an API call; its thread is the process's main thread where none is given."""
        columns |= {"start": start, "end": end, "correlationId": correlation, "nameId": self.string(name)}
        return self.row("CUPTI_ACTIVITY_KIND_RUNTIME", globalTid=self._tid(process, thread), **columns)

    def range(
        self,
        text: str | None,
        start: int,
        end: int | None,
        *,
        thread: int | None = None,
        process: int | None = None,
        domain: str | None = None,
        registered: bool = False,
        **columns: Any,
    ) -> Self:
        """Add an NVTX range; ``registered`` stores its name in StringIds, as a registered string is."""
        named = {"textId": self.string(text)} if registered and text is not None else {"text": text}
        number = self._domain(domain, self.process if process is None else process)
        columns = {"eventType": _PUSH_POP, "start": start, "end": end, "domainId": number, **named, **columns}
        return self.row("NVTX_EVENTS", globalTid=self._tid(process, thread), **columns)

    def mark(self, text: str, at: int, **options: Any) -> Self:
        """Add an NVTX mark."""
        return self.range(text, at, None, eventType=_MARK, **options)

    def stack(self, number: int, frames: Sequence[tuple[str, str]]) -> Self:
        """Add a call stack: (symbol, module), innermost first."""
        for depth, (symbol, module) in enumerate(frames):
            ids = {"symbol": self.string(symbol), "module": self.string(module)}
            self.row("CUDA_CALLCHAINS", id=number, stackDepth=depth, **ids)
        return self

    # device side

    def kernel(
        self,
        start: int,
        end: int,
        *,
        name: str = "kernel",
        stream: int = 7,
        api: str = "cudaLaunchKernel_v7000",
        shape: tuple[int, int, int, int, int, int] = (1, 1, 1, 32, 1, 1),
        **options: Any,
    ) -> Self:
        """Add a kernel; ``shape`` is its grid and its block."""
        columns = {"demangledName": self.string(name), "shortName": self.string(name.partition("<")[0])}
        columns |= dict(zip(_SHAPE, shape, strict=True))
        return self._work("CUPTI_ACTIVITY_KIND_KERNEL", (start, end), stream, api, {**columns, **options})

    def copy(
        self,
        start: int,
        end: int,
        direction: str = "h2d",
        n_bytes: int = 1 << 20,
        *,
        memory: str = "pinned",
        stream: int = 13,
        api: str = "cudaMemcpyAsync_v3020",
        **options: Any,
    ) -> Self:
        """Add a copy; ``memory`` is that of the host side."""
        source, target = (HOST_MEMORIES[memory] if side == "h" else _DEVICE_MEMORY for side in direction[::2])
        columns = {"bytes": n_bytes, "copyKind": COPY_KINDS[direction], "copyCount": 1}
        columns |= {"srcKind": source, "dstKind": target}
        return self._work("CUPTI_ACTIVITY_KIND_MEMCPY", (start, end), stream, api, {**columns, **options})

    def memset(
        self,
        start: int,
        end: int,
        n_bytes: int = 1024,
        *,
        stream: int = 7,
        api: str = "cudaMemsetAsync_v3020",
        **options: Any,
    ) -> Self:
        """Add a memset of device memory."""
        columns = {"bytes": n_bytes, "memKind": _DEVICE_MEMORY, **options}
        return self._work("CUPTI_ACTIVITY_KIND_MEMSET", (start, end), stream, api, columns)

    def graph(
        self, start: int, end: int, *, stream: int = 7, api: str = "cudaGraphLaunch_v10000", **options: Any
    ) -> Self:
        """Add a graph launch that was traced as one block."""
        columns = {"graphId": 1, "graphExecId": 2, **options}
        return self._work("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", (start, end), stream, api, columns)

    def migration(
        self, start: int, end: int, direction: str = "h2d", n_bytes: int = 4096, *, cause: int = 2, **options: Any
    ) -> Self:
        """Add a unified-memory migration, which nsys stores among the copies."""
        columns: dict[str, Any] = {"context": 0, "correlation": 0, "srcKind": 7, "dstKind": 7, "copyCount": None}
        columns |= {"copyKind": {"h2d": 11, "d2h": 12, "d2d": 13}[direction], "migrationCause": cause, **options}
        return self.copy(start, end, direction, n_bytes, stream=0, **columns)

    # events and synchronisation

    def record(self, event: int, *, stream: int, call: Call, sync: int | None = None, **options: Any) -> Self:
        """Add ``cudaEventRecord``; ``sync`` pairs it with its waits where the layout can say so."""
        columns = {"eventId": event, "eventSyncId": sync, "call": call, **options}
        return self._work("CUPTI_ACTIVITY_KIND_CUDA_EVENT", (0, 0), stream, "cudaEventRecord_v3020", columns)

    def wait(
        self,
        event: int,
        *,
        stream: int,
        call: Call,
        sync: int | None = None,
        api: str = "cudaStreamWaitEvent_v3020",
        **options: Any,
    ) -> Self:
        """Add ``cudaStreamWaitEvent``: the stream, not the host, waits."""
        columns = {"eventId": event, "eventSyncId": sync, "syncType": self.layout.sync.wait, **options}
        return self._synchronisation(call, stream, api, columns)

    def stream_sync(self, *, stream: int, call: Call, api: str = "cudaStreamSynchronize_v3020", **options: Any) -> Self:
        """Add ``cudaStreamSynchronize`` with its row in the synchronisation table."""
        columns = {"eventId": INVALID, "syncType": self.layout.sync.stream, **options}
        return self._synchronisation(call, stream, api, columns)

    def event_sync(self, event: int, *, call: Call, api: str = "cudaEventSynchronize_v3020", **options: Any) -> Self:
        """Add ``cudaEventSynchronize`` (or, with ``api``, a query) with its row in the synchronisation table."""
        columns = {"eventId": event, "syncType": self.layout.sync.event, **options}
        return self._synchronisation(call, INVALID, api, columns)

    def device_sync(self, *, call: Call, api: str = "cudaDeviceSynchronize_v3020", **options: Any) -> Self:
        """Add ``cudaDeviceSynchronize`` with its row in the synchronisation table."""
        columns = {"eventId": INVALID, "syncType": self.layout.sync.context, **options}
        return self._synchronisation(call, INVALID, api, columns)

    # what they share

    def _synchronisation(self, call: Call, stream: int, api: str, columns: dict[str, Any]) -> Self:
        return self._work("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", call, stream, api, {"call": call, **columns})

    def _work(self, table: str, times: Call, stream: int, api: str, options: dict[str, Any]) -> Self:
        """Add a row that stands on a stream, and the API call that submitted it where there is one."""
        call, thread = options.pop("call", None), options.pop("thread", None)
        process, correlation = options.pop("process", None), options.pop("correlation", None)
        if call is not None and correlation is None:
            self._correlation += 1
            correlation = self._correlation
        if call is not None:
            self.api(api, *call, thread=thread, process=process, correlation=correlation)
        columns = {
            "start": times[0],
            "end": times[1],
            "deviceId": options.pop("device", 0),
            "contextId": options.pop("context", 1),
            "greenContextId": options.pop("green", None),
            "streamId": stream,
            "globalPid": global_pid(self.process if process is None else process),
            "correlationId": correlation,
        }
        return self.row(table, **{**columns, **options})

    def _tid(self, process: int | None, thread: int | None) -> int:
        pid = self.process if process is None else process
        return global_pid(pid) | (pid if thread is None else thread)

    def _domain(self, name: str | None, process: int) -> int:
        if name is None:
            return 0
        if (process, name) not in self._domains:
            number = 1 + sum(pid == process for pid, _ in self._domains)
            self._domains[process, name] = number
            row = {"start": 0, "eventType": _DOMAIN, "text": name, "globalTid": global_pid(process) | process}
            self.row("NVTX_EVENTS", domainId=number, **row)
        return self._domains[process, name]


def layered_forward(
    builder: TraceBuilder,
    *,
    start: int,
    loads: Sequence[Sequence[tuple[int, int]]],
    computes: Sequence[Sequence[tuple[int, int]]],
    number: int = 0,
    step: int = 10,
    n_bytes: int = 2 << 20,
    streams: tuple[int, int] = (13, 7),
    **options: Any,
) -> TraceBuilder:
    """Add a forward whose host side runs ahead of the device: all loads are submitted, then all compute.

    ``loads[i]`` and ``computes[i]`` are the device intervals of layer i's copies and kernels. On the host the range
    ``forward number`` opens at ``start``; every submission takes one ``step``, its call the middle of it. ``options``
    go to the copies.
    """
    load_stream, compute_stream = streams
    at = start + step
    for word, layers in (("load", loads), ("compute", computes)):
        for layer, intervals in enumerate(layers):
            opened = at
            for begin, end in intervals:
                call = (at + step // 3, at + 2 * step // 3)
                if word == "load":
                    builder.copy(begin, end, "h2d", n_bytes, stream=load_stream, call=call, **options)
                else:
                    builder.kernel(begin, end, stream=compute_stream, call=call)
                at += step
            builder.range(f"{word} layer {layer}", opened, at)
    return builder.range(f"forward {number}", start, at + step)
