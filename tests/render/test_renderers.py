from __future__ import annotations

import subprocess
import sys

import pytest
from report_samples import SAMPLES, healthy

from traceview.render import RENDERERS, markdown, text
from traceview.render import json as json_renderer


def test_a_format_is_drawn_by_the_module_of_its_name() -> None:
    assert RENDERERS["text"](healthy(), width=80) == text.render(healthy(), width=80)
    assert RENDERERS["json"](healthy()) == json_renderer.render(healthy())
    assert RENDERERS["markdown"](healthy()) == markdown.render(healthy())


@pytest.mark.parametrize("name", RENDERERS)
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_format_draws_every_sample_and_ends_with_a_line_break(name: str, sample: str) -> None:
    drawn = RENDERERS[name](SAMPLES[sample]())
    assert drawn.strip()
    assert drawn.endswith("\n")
    assert not drawn.endswith("\n\n")


def test_knowing_the_formats_imports_none_of_what_draws_them() -> None:
    script = (
        "import sys, traceview.render; print([name for name in ('rich', 'numpy', 'pandas') if name in sys.modules])"
    )
    finished = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert finished.stdout.strip() == "[]"
