"""Every exception that traceview raises on purpose.

::

    TraceviewError            exit code 1
    ├── InputError            1   this file cannot be read as an export
    │   └── NsysError         1   the export by ``nsys`` could not be made
    ├── OutputError           1   a result could not be written (2 from a command whose 1 is a verdict)
    └── UsageError            2   the request makes no sense
        └── SelectionError    2   the selection matches nothing in this trace

Each carries one line that says what happened and a hint that says what to type next; the command line prints both and
exits with ``exit_code``.
"""

from __future__ import annotations

from typing import ClassVar


class TraceviewError(Exception):
    """Base of all errors that a user can cause and mend."""

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InputError(TraceviewError):
    """The file cannot be read as an Nsight Systems export."""


class NsysError(InputError):
    """``nsys`` is missing or failed to export the report."""


class OutputError(TraceviewError):
    """A result could not be written where it was asked for."""


class UsageError(TraceviewError):
    """The request itself is wrong, whatever the trace holds."""

    exit_code: ClassVar[int] = 2


class SelectionError(UsageError):
    """The selection matches nothing in this trace; the hint lists what there is."""
