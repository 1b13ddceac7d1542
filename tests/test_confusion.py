"""Every planted cause is the one found first, and the README shows it."""

from __future__ import annotations

import pytest
from confusion import FOLDER, PLANTED, ROOT, found_first, readme


def test_every_capture_has_a_planted_cause() -> None:
    assert set(PLANTED) == {path.stem for path in FOLDER.glob("*.sqlite")}


@pytest.mark.parametrize("name", PLANTED)
def test_the_planted_cause_is_found_first(name: str) -> None:
    assert found_first(name) == PLANTED[name]


def test_the_readme_shows_the_confusion_matrix() -> None:
    text = (ROOT / "README.md").read_text()
    assert text == readme(text), "run: python tests/confusion.py --write"
