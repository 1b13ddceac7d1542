"""Each preset names functions and parameters that its release really has."""

from __future__ import annotations

import re
import string
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from instrument.attaching.check import Finding, check_wrap
from instrument.attaching.presets import PRESETS, Preset
from instrument.attaching.wrap_spec import Wrap
from instrument.naming import LOAD_PATTERN

if TYPE_CHECKING:
    from pathlib import Path

WHEEL_OF = ["--only-binary=:all:", "--python-version=3.11", "--implementation=cp"]
WHEEL_OF += ["--platform=manylinux_2_34_x86_64", "--platform=any"]
"""Which wheel of a release is looked at, whatever runs the test; its Python source is the same in all."""


def fetch_source(preset: Preset, folder: Path) -> Path:
    """Download the release's wheel and unpack its Python source, without installing or importing it."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *WHEEL_OF, f"--dest={folder}"]
    command.append(f"{preset.package}=={preset.release}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    wheels = list(folder.glob("*.whl"))
    if not wheels:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1]
        pytest.skip(f"{preset.package} {preset.release} cannot be fetched from the package index: {reason}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        wheel.extractall(folder, [name for name in wheel.namelist() if name.endswith(".py")])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PRESETS))
def test_the_names_and_parameters_of_a_preset_are_in_its_release(name: str, tmp_path: Path) -> None:
    """A name that drifted fails here with near matches; so does a note, since everything must be sure."""
    source = fetch_source(PRESETS[name], tmp_path)
    wraps = PRESETS[name].wraps()
    assert {str(wrap): check_wrap(wrap, [str(source)]) for wrap in wraps} == dict.fromkeys(map(str, wraps), Finding())
    drifted = check_wrap(Wrap(wraps[0].module, wraps[0].name + "s", wraps[0].text), [str(source)])
    assert wraps[0].name in (drifted.error or drifted.note or "")


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_can_be_read_and_names_nothing_twice(name: str) -> None:
    wraps = PRESETS[name].wraps()
    places = [(wrap.module, wrap.name) for wrap in wraps]
    assert len(places) == len(set(places))
    assert {wrap.module.split(".")[0] for wrap in wraps} == {PRESETS[name].package}


def test_loads_of_the_contract_have_a_layer_once_filled() -> None:
    texts = [wrap.text for preset in PRESETS.values() for wrap in preset.wraps() if wrap.text.startswith("load layer")]
    assert texts
    for text in texts:
        filled = "".join(literal + ("3" if field else "") for literal, field, *_ in string.Formatter().parse(text))
        assert re.search(LOAD_PATTERN, filled), text
