"""Text from a trace as something that is safe and short enough to show."""

from __future__ import annotations

import re

_LONGEST = 10_000
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one 8-bit character
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC and other strings: titles, links
    r"|\x1b[ -/]*[0-~]?"  # the rest
)


def shown(text: str, longest: int = _LONGEST) -> str:
    """Return a name of a trace as one harmless line of at most ``longest`` characters.

    Terminal escape sequences, control characters, bidirectional and zero-width marks are dropped, white space (also
    line breaks) becomes single spaces, half surrogates become ``?``, and what is too long loses its middle. Names are
    data: a renderer still has to quote what its own format gives a meaning.
    """
    visible = _ESCAPES.sub("", text[: 2 * _LONGEST])
    if not visible.isprintable():
        visible = "".join(_replaced(character) for character in visible)
    return shortened(" ".join(visible.split()) or "(blank)", longest)


def shortened(text: str, longest: int) -> str:
    """Return ``text`` with its middle cut out where it has more than ``longest`` characters; the end says much too."""
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    head = longest - 1 - tail
    return f"{text[:head]}…{text[len(text) - tail :]}"


def _replaced(character: str) -> str:
    if character.isprintable():
        return character
    if character.isspace():
        return " "
    return "?" if "\ud800" <= character <= "\udfff" else ""
