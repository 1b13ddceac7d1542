"""Takes out of texts what tells of people and machines: hosts, users, folders, GPU identities.

What a slimmed trace keeps as text was chosen before; this looks at the texts that were chosen. Host and user names are
those that the capture itself tells of, in its description and in the environment that it stored.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from instrument.naming import FACTS_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from traceview.nsys.database import Database

HOST, USER, IDENTITY = "[host]", "[user]", "[id]"

_PATH = re.compile(
    r"(?<![\w./\\-])(?:~|[A-Za-z]:)?(?:[/\\]+[^\s/\\:;,'\"<>|(){}\[\]]+)+[/\\]+(?=[^\s/\\:;,'\"<>|(){}\[\]])"
)
"""The folders of an absolute path: all of it up to its last name."""

_INSTALLED = re.compile(r".*[/\\](?:site|dist)-packages[/\\](?P<inside>.+)")
_UUID = re.compile(r"\b(?:GPU-|MIG-)?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b")
_IDENTITIES = ("uuid", "pci_address", "serial")
"""Keys of facts that name one GPU of the world."""

_HOST_KEYS = ("EXPORT_HOST", "DEVICE_DISPLAY_NAME", "Hostname")
_USER_KEYS = ("EXPORT_USER", "USER_NAME", "UserName")
_HOST_VARIABLES = (
    "HOST", "HOSTNAME", "COMPUTERNAME", "CONTAINER_NAME", "NODE_NAME", "POD_NAME", "SLURMD_NODENAME",
    "SLURM_SUBMIT_HOST",
)  # fmt: skip
_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER", "SLURM_JOB_USER")
_DESCRIPTIONS = ("META_DATA_EXPORT", "EXPORT_META_DATA", "META_DATA_CAPTURE", "TARGET_INFO_SYSTEM_ENV")
_SAY_NOTHING = {"root", "user", "admin", "localhost", "none", "null", "true", "false", "local"}
_SHORTEST = 3


class Scrubber:
    """Knows a capture's host and user names and takes them, folders and GPU identities out of texts."""

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = ()) -> None:
        names = [(name, HOST) for name in hosts] + [(name, USER) for name in users]
        self._names = {name: put for name, put in names if _tells(name)}
        words = sorted(self._names, key=len, reverse=True)
        # a name beside a dot, dash or underscore (worker-7, alice_run) is one all the same
        pattern = "|".join(re.escape(word) for word in words)
        self._pattern = re.compile(rf"(?<![^\W_])(?:{pattern})(?![^\W_])") if words else None

    def text(self, text: str) -> str:
        """Return a text without host, user, folders and GPU identities; of a facts mark its JSON, value by value."""
        if text.startswith(f"{FACTS_PREFIX}{{"):
            try:
                facts = json.loads(text[len(FACTS_PREFIX) :])
            except ValueError:
                return FACTS_PREFIX
            return FACTS_PREFIX + json.dumps(self.value(facts), separators=(",", ":"))
        text = _UUID.sub(IDENTITY, _PATH.sub("", text))
        return self._pattern.sub(lambda found: self._names[found.group()], text) if self._pattern else text

    def module(self, path: str) -> str:
        """Return the base name of a library's path."""
        return self.text(re.split(r"[/\\]", path.rstrip("/\\"))[-1])

    def source_file(self, path: str) -> str:
        """Return a Python file as reports name it: from its package on where it is installed, else its base name."""
        installed = _INSTALLED.fullmatch(path)
        return self.text(installed["inside"]) if installed else self.module(path)

    def value(self, value: Any) -> Any:
        """Return plain values as JSON has them, each text scrubbed, without keys that identify a GPU."""
        if isinstance(value, dict):
            kept = {key: one for key, one in value.items() if str(key).lower() not in _IDENTITIES}
            return {self.text(str(key)): self.value(one) for key, one in kept.items()}
        if isinstance(value, list):
            return [self.value(one) for one in value]
        return self.text(value) if isinstance(value, str) else value


def scrubber_for(database: Database) -> Scrubber:
    """Return a scrubber that knows the host and user names that an export tells of."""
    told = list(_told(database))
    hosts = [value for key, value in told if key in _HOST_VARIABLES or key.endswith(_HOST_KEYS)]
    users = [value for key, value in told if key in _USER_VARIABLES or key.endswith(_USER_KEYS)]
    return Scrubber(hosts, users)


def _tells(name: str) -> bool:
    return len(name) >= _SHORTEST and not name.isdigit() and name.lower() not in _SAY_NOTHING


def _told(database: Database) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of every line of the capture's descriptions and of every environment that it stored."""
    for table in _DESCRIPTIONS:
        if {"name", "value"} <= database.tables.get(table, frozenset()):
            for key, value in database.rows(f'SELECT name, value FROM "{table}"'):  # noqa: S608
                yield str(key), str(value)
                yield from _variables(str(value))
    if {"id", "value"} <= database.tables.get("StringIds", frozenset()):
        query = "SELECT value FROM StringIds WHERE INSTR(CAST(value AS BLOB), x'00') AND INSTR(value, '=')"
        for (text,) in database.rows(query):
            yield from _variables(str(text))


def _variables(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that a text holds: ``A=b`` divided by NUL, line or semicolon, values perhaps in quotes."""
    for part in re.split(r"[\x00\n;]", text):
        key, equals, value = part.partition("=")
        if equals and re.fullmatch(r"\w+", key):
            yield key, value.strip().strip("\"'")
