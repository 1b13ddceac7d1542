"""A budget file is read strictly: what it does not know is an error that lists what it knows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from traceview.analysis.budget_file import parse_budget, read_budget
from traceview.analysis.budget_quantities import KNOWN_KEYS, LIMIT_KEYS
from traceview.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def budget(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_limits_and_globs_are_laid_over_each_other(tmp_path: Path) -> None:
    read = read_budget(
        budget(
            tmp_path / "b.toml",
            """
            [limits]
            makespan_ms = "<= 12.5"
            accidental_syncs = "== 0"
            findings = ["!high"]
            [files."offload_*.sqlite"]
            makespan_us = "<= 40000"
            [files."traces/offload_big.sqlite"]
            makespan_ms = "<= 90"
            findings = ["host_bound", "!any"]
            """,
        )
    )

    def rules(path: str) -> list[str]:
        found = read.for_path(path)
        return [str(one) for one in (*found.limits, *found.findings)]

    assert rules("run.sqlite") == ["makespan_ms <= 12.5", "accidental_syncs == 0", "!high"]
    assert rules("deep/down/offload_1.sqlite") == ["makespan_us <= 40000", "accidental_syncs == 0", "!high"]
    assert rules("traces/offload_big.sqlite") == ["makespan_ms <= 90", "accidental_syncs == 0", "host_bound", "!any"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[limits]\nmakspan_ms = "<= 1"', "did you mean makespan_ms"),
        ('[limits]\nmakespan = "<= 1"', "did you mean makespan_ms"),
        ("[limits]\nmakespan_ms = 12", 'write it as makespan_ms = "<= 1.5"'),
        ('[limits]\nmakespan_ms = "12"', 'write it as makespan_ms = "<= 1.5"'),
        ('[limits]\nmakespan_ms = "<= 12 ms"', 'write it as makespan_ms = "<= 1.5"'),
        ('[limits]\nmakespan_ms = "<= 1e999"', 'write it as makespan_ms = "<= 1.5"'),
        ('[limits]\nmakespan_ms = "<= nan"', 'write it as makespan_ms = "<= 1.5"'),
        ('[limits]\nmakespan_ms = "<= \u0663"', 'write it as makespan_ms = "<= 1.5"'),
        ('[limits]\npipeline_efficiency = ">= 95 %"', 'write it as pipeline_efficiency = ">= 0.95"'),
        ('[limits]\nmakespan_ms = "<= 9"\nmakespan_us = ">= 1"', "makespan_ms and makespan_us limit the same"),
        (f"[limits]\nfindings = {'[' * 3000}{']' * 3000}", "is nested too deep"),
        ('[limits]\nfindings = ["!pagable_source"]', "did you mean pageable_source"),
        ('[limits]\nfindings = "!high"', "is no list of names"),
        ('makespan_ms = "<= 1"', "put it under [limits]"),
        ('[limit]\nmakespan_ms = "<= 1"', "did you mean limits"),
        ('[files]\n"a.sqlite" = 3', "is no table"),
        ('[files."a*"]\nmakspan_ms = "<= 1"', "did you mean makespan_ms"),
        ("", "limits nothing"),
        ("[limits", "is no TOML"),
    ],
)
def test_what_is_not_known_is_an_error_that_says_what_is(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        read_budget(budget(tmp_path / "b.toml", text))
    assert told in str(raised.value)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_bytes(b'\xef\xbb\xbf[limits]\nmakespan_ms = "<= 9"\n')
    assert [str(limit) for limit in read_budget(path).for_path("run.sqlite").limits] == ["makespan_ms <= 9"]


def test_globs_that_match_nothing_are_known() -> None:
    read = parse_budget({"files": {"a*.sqlite": {"findings": []}, "b*.sqlite": {"findings": []}}})
    assert read.unmatched(["traces/a1.sqlite", "c.sqlite"]) == ("b*.sqlite",)


def test_an_unknown_key_lists_all_that_are_known() -> None:
    with pytest.raises(UsageError) as raised:
        parse_budget({"limits": {"nonsense": "<= 1"}})
    assert all(key in raised.value.hint for key in KNOWN_KEYS)
    assert set(KNOWN_KEYS) <= set(LIMIT_KEYS)


def test_times_and_sizes_can_be_written_in_several_units() -> None:
    assert {"makespan_ms", "makespan_us", "makespan_ns", "makespan_s"} <= set(LIMIT_KEYS)
    assert {"pageable_bytes", "pageable_kib", "pageable_mib", "pageable_gib"} <= set(LIMIT_KEYS)
    assert {"load_rate_gb_s", "pipeline_efficiency", "h2d_pieces_per_layer"} <= set(LIMIT_KEYS)
