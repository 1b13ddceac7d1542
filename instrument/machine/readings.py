"""Collects facts one by one, and keeps the reason for each that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from instrument.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Callable


class Readings:
    """Facts by key, and beside them ``unavailable``: the reason for each key that is absent."""

    def __init__(self) -> None:
        self.facts: dict[str, object] = {}
        self.unavailable: dict[str, str] = {}

    def take(self, key: str, read: Callable[[], object]) -> None:
        """Store what ``read`` returns under ``key``; when it raises, store the reason.

        Whatever a driver, a library or a kernel answers: the program whose facts these are goes on.
        """
        try:
            self.facts[key] = read()
        except Exception as error:
            expected = isinstance(error, UnreadableError | OSError)
            text = str(error) if expected else f"{type(error).__name__}: {error}"
            self.unavailable[key] = " ".join(text.split())

    def as_facts(self) -> dict[str, object]:
        """Return the facts, with the key ``unavailable`` when anything is absent."""
        return {**self.facts, "unavailable": self.unavailable} if self.unavailable else dict(self.facts)
