"""Every error that ``instrument`` raises on purpose.

    InstrumentError          exit 1: the machine or the data does not allow what was asked for
    ├── UnreadableError          exit 1: a fact that this machine does not tell
    └── WrongUsageError          exit 2: options that contradict each other or make no sense

The message is one line that says what happened and what to type next; the command line prints it and exits with
``exit_code``.
"""

from __future__ import annotations


class InstrumentError(Exception):
    """What was asked for cannot be done here; the text says why and what to do instead."""

    exit_code = 1


class UnreadableError(InstrumentError):
    """A fact cannot be read here; the text says why."""


class WrongUsageError(InstrumentError):
    """The options contradict each other; the text says which and what to type instead."""

    exit_code = 2
