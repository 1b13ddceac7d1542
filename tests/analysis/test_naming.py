"""What the names of ranges mean, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plain_trace import read_back
from trace_builder import TraceBuilder

from traceview.analysis.naming import NOTHING, Named, RangeNames, read_names
from traceview.errors import SelectionError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from traceview.model import Trace


def named(folder: Path, *texts: str, domain: str | None = None) -> Trace:
    """Return a trace with a range of each name, in this order."""
    builder = TraceBuilder().api("cudaMalloc_v3020", 0, 1)
    for at, text in enumerate(texts):
        builder.range(text, 10 + at, 20 + at, domain=domain)
    return read_back(builder, folder)


def meanings(trace: Trace, **names: str) -> list[tuple[str, int]]:
    found = read_names(trace, RangeNames(**names))
    return [(Named(one).name, layer) for one, layer in zip(found.meaning.tolist(), found.layer.tolist(), strict=True)]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("forward", ("FORWARD", -1)),
        ("Forward #12", ("FORWARD", -1)),
        ("forward -1", ("FORWARD", -1)),
        ("forward pass", ("NOTHING", -1)),
        ("load layer 0", ("LOAD", 0)),
        ("LOAD_LAYER:17", ("LOAD", 17)),
        ("loadlayer 3", ("LOAD", 3)),
        ("load layer", ("NOTHING", -1)),
        ("load layer 3 again", ("NOTHING", -1)),
        ("load layer -3", ("NOTHING", -1)),
        ("load layer 999999999", ("LOAD", 999_999_999)),
        ("load layer 1000000000", ("NOTHING", -1)),
        ("compute layer 5", ("COMPUTE", 5)),
        ("layer 5", ("NOTHING", -1)),
    ],
)
def test_a_name_means_a_forward_a_load_a_compute_or_nothing(
    text: str, meaning: tuple[str, int], tmp_path: Path
) -> None:
    assert meanings(named(tmp_path, text)) == [meaning]


def test_other_names_are_found_by_other_expressions(tmp_path: Path) -> None:
    trace = named(tmp_path, "step", "h2d 4", "layers.4", "load layer 9")
    found = meanings(trace, forward="^step$", load=r"^h2d (?P<layer>\d+)$", compute=r"^layers\.(?P<layer>\d+)$")
    assert found == [("FORWARD", -1), ("LOAD", 4), ("COMPUTE", 4), ("NOTHING", -1)]


def test_a_name_that_fits_two_expressions_is_a_load_before_all_else(tmp_path: Path) -> None:
    trace = named(tmp_path, "load layer 1", "all layers")
    assert meanings(trace, forward="layer") == [("LOAD", 1), ("FORWARD", -1)]


def test_an_expression_may_name_nothing_on_purpose(tmp_path: Path) -> None:
    assert meanings(named(tmp_path, "load layer 1"), load=NOTHING) == [("NOTHING", -1)]


def test_ranges_of_another_domain_do_not_count(tmp_path: Path) -> None:
    builder = TraceBuilder().api("cudaMalloc_v3020", 0, 1).range("forward 0", 10, 20, domain="engine")
    trace = read_back(builder.range("forward 1", 30, 40), tmp_path)
    assert meanings(trace) == [("FORWARD", -1), ("FORWARD", -1)]
    assert meanings(trace, domain="engine") == [("FORWARD", -1), ("NOTHING", -1)]


def test_a_domain_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(SelectionError, match="no range in the domain other") as raised:
        meanings(named(tmp_path, "forward 0", domain="engine"), domain="other")
    assert raised.value.hint == "there is: 'engine'"


@pytest.mark.parametrize("option", ["forward", "load", "compute"])
def test_an_expression_that_matches_no_range_is_refused_with_the_names_that_are_there(
    option: str, tmp_path: Path
) -> None:
    trace = named(tmp_path, "step 0", "layer", "layer")
    with pytest.raises(SelectionError, match=rf"^--{option}-range \^x\(\?P<layer>\) matches no range") as raised:
        meanings(trace, **{option: "^x(?P<layer>)"})
    assert raised.value.hint == "there is: 'layer', 'step 0'"


@pytest.mark.parametrize("option", ["load", "compute"])
def test_an_expression_for_layers_needs_a_group_for_their_number(option: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--{option}-range has no group named layer"):
        meanings(named(tmp_path, "layer 1"), **{option: r"^layer (\d+)$"})


def test_what_is_no_expression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--forward-range is no regular expression"):
        meanings(named(tmp_path, "layer 1"), forward="(")
