"""What blocking calls cost a forward, written a second time: a part of the twin in ``brute_force``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brute_force import holds, is_explicit_sync, is_implicit_sync

if TYPE_CHECKING:
    from brute_force import Row


def sync_costs(measures: Row, operations: list[Row], calls: list[Row], forward: Row) -> dict[int, int]:
    """Return what each blocking call cost a forward, by the call's index.

    Reading: a call forces the waits of what its own thread launches after the call began, so idle time before other
    operations is not its doing; the queue is full again when the predecessor of the first such compute operation whose
    launch ended before it did, ends; the next blocking call is the next one of the same thread in the forward.
    """
    threads = {calls[op["launch"]]["thread"] for op in operations if op["inside"]}
    blocking = {}
    for index, call in enumerate(calls):
        waits = is_explicit_sync(call) or is_implicit_sync(call, operations, calls)
        if waits and call["thread"] in threads and holds(forward, call["start"]):
            blocking[index] = call
    costs = {}
    for index, call in blocking.items():
        stops = [queue_full(measures["computes"], calls, call)]
        stops += [row["start"] for row in blocking.values() if row["thread"] == call["thread"]]
        stop = min(moment for moment in [*stops, measures["t1"]] if moment > call["start"] or moment == stops[0])
        costs[index] = 0
        for moment in range(call["start"], stop):
            counted = measures["labels"].get(moment) in ("sync", "implicit_sync", "host", "launch")
            if counted and forced(measures["before"][moment], calls, call):
                costs[index] += 1
    return costs


def forced(op: Row, calls: list[Row], blocking: Row) -> bool:
    """Return whether an operation was launched by a blocking call's thread after the call began."""
    if op["launch"] is None:
        return False
    launch = calls[op["launch"]]
    return bool(launch["thread"] == blocking["thread"] and launch["start"] >= blocking["start"])


def queue_full(computes: list[Row], calls: list[Row], blocking: Row) -> int:
    """Return when work is queued up again behind what runs, long after everything where it never is."""
    reached = computes[0]["end"]
    for op in computes[1:]:
        if forced(op, calls, blocking) and calls[op["launch"]]["end"] < reached:
            return int(reached)
        reached = max(reached, op["end"])
    return 10**9
