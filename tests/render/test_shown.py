from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceview.render.shown import shortened, shown


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("forward 0", "forward 0"),
        ("größe 层 λ", "größe 层 λ"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x9b31mred", "red"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title without an end", "(blank)"),
        ("a\x1bcb", "ab"),
        ("a\r\n\tb\u2028c", "a b c"),
        ("a\u202eb\u2066c\u200bd\x00e\x7ff", "abcdef"),
        ("half\ud800", "half?"),
        ("", "(blank)"),
        ("\x00", "(blank)"),
    ],
)
def test_what_could_act_on_a_terminal_is_gone(text: str, seen: str) -> None:
    assert shown(text) == seen


def test_a_long_name_keeps_its_beginning_and_its_end() -> None:
    assert shortened("void kernel<float, 128>(int)", 16) == "void kerne…(int)"
    assert shortened("short", 5) == "short"


def test_a_name_of_a_million_escapes_is_answered_at_once() -> None:
    assert len(shown("\x1b]" * 1_000_000 + "end", 40)) <= 40


@given(st.text(alphabet=st.characters(), max_size=200), st.integers(min_value=12, max_value=80))
def test_what_is_shown_is_one_printable_line_of_bounded_length(text: str, longest: int) -> None:
    seen = shown(text, longest)
    assert seen.isprintable()
    assert 0 < len(seen) <= longest
    assert shown(seen, longest) == seen
