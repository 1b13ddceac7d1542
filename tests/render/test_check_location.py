"""A broken rule is shown at the source line of its call stack where that file is here, else at the trace."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from traceview.analysis.budget import BROKEN, CANNOT_JUDGE, PASS, Checked, Outcome
from traceview.render.check_location import Location, locate
from traceview.render.github import render as render_github
from traceview.render.junit import render as render_junit
from traceview.render.sarif import render as render_sarif

SCHEMAS = Path(__file__).parents[1] / "schemas"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in ("engine/sched.py", "engine/deep/model.py", "run.py", "traces/a b.sqlite"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (("decode (/app/engine/sched.py:214)",), Location("engine/sched.py", 214)),
        ((".item()", "f (torch/_tensor.py:9)", "g (/x/engine/deep/model.py:7)"), Location("engine/deep/model.py", 7)),
        (("decode (engine/sched.py:3)",), Location("engine/sched.py", 3)),
        (("main (run.py:5)",), Location("run.py", 5)),
        (("main (/somewhere/else/run.py:5)",), Location("traces/a b.sqlite", None)),
        (("main (../run.py:5)",), Location("traces/a b.sqlite", None)),
        (("at::native::item", "decode (/app/gone.py:2)"), Location("traces/a b.sqlite", None)),
        ((), Location("traces/a b.sqlite", None)),
    ],
)
def test_locate(frames: tuple[str, ...], expected: Location, repository: Path) -> None:
    assert locate(str(repository / "traces" / "a b.sqlite"), frames, repository) == expected


def test_a_trace_outside_the_repository_keeps_its_path(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "t.sqlite"
    assert locate(str(elsewhere), (), repository) == Location(elsewhere.as_posix(), None)


@pytest.fixture
def checked(repository: Path) -> list[Checked]:
    frames = (".item()", "decode (/app/engine/sched.py:214)")
    hostile = "100 % of, it:\x1b[31m <b>\r\n::error::injected"
    return [
        Checked(
            str(repository / "traces" / "a b.sqlite"),
            "budget",
            (
                Outcome("accidental_syncs == 0", "accidental_syncs", BROKEN, hostile, where=frames),
                Outcome("makespan_ms <= 1", "makespan", CANNOT_JUDGE, "makespan_ms cannot be judged", "no forward"),
                Outcome("!high", "high", PASS, "no finding of severity high"),
            ),
        )
    ]


def test_sarif_points_to_the_source_line_and_relates_the_trace(checked: list[Checked], repository: Path) -> None:
    log = json.loads(render_sarif(checked, repository))
    jsonschema.Draft4Validator(json.loads((SCHEMAS / "sarif-2.1.0-rtm.5.json").read_text())).validate(log)
    (result,) = log["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "engine/sched.py"}, "region": {"startLine": 214}}
    trace = result["relatedLocations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert trace == "traces/a%20b.sqlite"


def test_annotations_stay_one_command_a_line_whatever_a_name_holds(checked: list[Checked], repository: Path) -> None:
    lines = render_github(checked, repository).splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(
        "::error file=engine/sched.py,line=214,title=traceview%3A accidental_syncs == 0::100 %25 of"
    )
    assert lines[1] == "::warning file=traces/a b.sqlite,title=traceview%3A cannot judge::1 of 3 rules: no forward"
    assert "\x1b" not in "".join(lines)


def test_junit_holds_no_character_that_xml_cannot(checked: list[Checked]) -> None:
    written = render_junit(checked).decode()
    assert "\x1b" not in written
    assert '<testsuites name="traceview check" tests="3" failures="1" errors="1">' in written
