"""Fixtures for ranges and facts: a domain that keeps what is written to it, one that nobody hears, touched memory."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING, Any

import pytest

from instrument import ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

REMEMBERING = ("named", "forward", "load", "compute", "storage_read", "stage")


class RecordingDomain:
    """Keeps events in ``log``: ``>text`` and ``<`` for push and pop, ``[text`` and ``]text`` for start and end."""

    handle = "live"

    def __init__(self) -> None:
        self.log: list[str] = []
        self.payloads: dict[str, int | None] = {}
        self._open: dict[int, str] = {}

    def get_event_attributes(self, message: str, payload: int | None = None) -> str:
        self.payloads[message] = payload
        return message

    def push_range(self, attributes: str) -> None:
        self.log.append(f">{attributes}")

    def pop_range(self) -> None:
        self.log.append("<")

    def start_range(self, attributes: str) -> int:
        self.log.append(f"[{attributes}")
        self._open[len(self.log)] = attributes
        return len(self.log)

    def end_range(self, number: int) -> None:
        self.log.append(f"]{self._open.pop(number)}")

    def mark(self, attributes: str) -> None:
        self.log.append(f"!{attributes}")


class SilentDomain:
    """What the ``nvtx`` package gives when nobody listens: no handle."""


def _use(domain: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(ranges, "traceview_domain", lambda: domain)
    forget()
    yield domain
    forget()


def forget() -> None:
    """Drop the ranges that were made for another domain."""
    for name in REMEMBERING:
        getattr(ranges, name).cache_clear()


@pytest.fixture
def listening(monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordingDomain]:
    yield from _use(RecordingDomain(), monkeypatch)


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[SilentDomain]:
    yield from _use(SilentDomain(), monkeypatch)


@pytest.fixture
def touched_memory() -> Iterator[tuple[int, int]]:
    """Address and size of touched memory in pages of its own."""
    memory = mmap.mmap(-1, 64 * mmap.PAGESIZE)
    memory.write(b"x" * len(memory))
    view = (ctypes.c_char * len(memory)).from_buffer(memory)
    yield ctypes.addressof(view), len(memory)
    del view
    memory.close()
