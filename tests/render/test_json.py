from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import jsonschema
import numpy as np
import pytest
from report_samples import SAMPLES, faulty, healthy, without_layers

from traceview import report, report_links
from traceview.render.json import as_dict, render, schema
from traceview.report import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Callable

VALIDATOR = jsonschema.Draft202012Validator(schema())

# the contract, in its order; what stands after the bar is more than it fixes
MEASURES = (
    "first_layer_exposed_ns exposed_load_ns exposed_load_later_ns ideal_ns serial_ns pipeline_efficiency hidden "
    "load_busy_ns compute_busy_ns compute_inflation_ns overlap_ns load_pieces load_bytes accounting"
)
CONTRACT = {
    "trace": "path product_version schema_version start_ns duration_ns devices processes captured missing facts"
    " | diagnostics degraded",
    "forwards": "name index process device warmup t0_ns t1_ns makespan_ns lead_in_ns layers_from "
    + MEASURES
    + " layers | load_memory",
    "summary": "forwards makespan_ns lead_in_ns " + MEASURES,
    "overlap": "scope device a b busy_a_ns busy_b_ns overlap_ns ratio | process",
    "exposed_copy": "scope device class exposed_ns | process",
    "copies": "device direction memory stream pieces bytes busy_ns span_ns rate_busy rate_span min_bytes median_bytes"
    " p95_bytes max_bytes histogram fit | gap_median_ns host_median_ns",
    "migrations": "device direction cause count bytes busy_ns",
    "syncs": "api kind forward count accidental blocked_ns cost_ns range where | boundary direction",
    "lanes": "class direction mover bytes rate_alone rate_together with shared_lane verdict"
    " | process device memory transfers busy_ns rate together_ns slowdown links path_from ceiling ceiling_from",
    "findings": "id severity cost_ns share basis message evidence advice",
    "abstained": "measure reason fix",
}
TOP = (
    "schema trace forwards summary overlap exposed_copy copies migrations syncs lanes findings abstained"
    " | what_if checklist storage inbound network"
)


def parsed(of: report.Report) -> dict[str, Any]:
    """Return the report as a strict reader of JSON sees it."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    result: dict[str, Any] = json.loads(render(of), parse_constant=refuse)
    return result


def test_the_keys_are_those_of_the_contract_in_its_order() -> None:
    document = parsed(faulty())
    assert list(document) == TOP.replace("| ", "").split()
    for section, keys in CONTRACT.items():
        rows = document[section] if isinstance(document[section], list) else [document[section]]
        fullest = max(rows, key=len)
        assert list(fullest) == keys.replace("| ", "").split(), section


def test_an_accounting_has_all_categories_and_sums_to_the_makespan() -> None:
    for forward in parsed(healthy())["forwards"]:
        assert tuple(forward["accounting"]) == CATEGORIES
        assert sum(forward["accounting"].values()) == forward["makespan_ns"]


def test_what_the_trace_cannot_answer_is_absent_and_an_answer_of_none_is_null() -> None:
    document = parsed(without_layers())
    only = document["forwards"][0]
    assert "ideal_ns" not in only
    assert "ideal_ns" not in document["summary"]
    assert only["layers_from"] is None
    assert document["trace"]["facts"] is None
    assert "cost_ns" not in parsed(faulty())["syncs"][-1]
    assert parsed(faulty())["syncs"][-1]["accidental"] is None
    assert parsed(SAMPLES["empty"]())["summary"] is None


def test_a_number_that_json_cannot_hold_becomes_null() -> None:
    assert parsed(faulty())["trace"]["facts"]["temperature"] is None


def test_numbers_of_numpy_become_plain_numbers() -> None:
    forward = replace(healthy().forwards[0], t0_ns=np.int64(7))
    document = as_dict(replace(healthy(), forwards=(forward,)))
    assert type(document["forwards"][0]["t0_ns"]) is int
    assert parsed(replace(healthy(), forwards=(forward,)))["forwards"][0]["t0_ns"] == 7


def test_names_come_back_as_they_were_and_reach_no_terminal_as_escapes() -> None:
    written = render(faulty())
    assert written.isascii()
    assert "\x1b" not in written
    assert parsed(faulty())["trace"]["path"] == faulty().trace.path


def test_indent_changes_the_layout_only() -> None:
    assert render(healthy(), indent=None).count("\n") == 1
    assert json.loads(render(healthy(), indent=None)) == json.loads(render(healthy()))


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_sample_satisfies_the_schema(sample: str) -> None:
    VALIDATOR.validate(parsed(SAMPLES[sample]()))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


BROKEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "a section is missing": lambda document: document.pop("syncs"),
    "a misspelt section": lambda document: document.update(sync=document.pop("syncs")),
    "another version": lambda document: document.update(schema="traceview.report/2"),
    "a misspelt measure": lambda document: document["summary"].update(ideal=1),
    "a category is missing": lambda document: document["forwards"][0]["accounting"].pop("host"),
    "an unknown category": lambda document: document["forwards"][0]["accounting"].update(python=0),
    "a float of ns": lambda document: document["forwards"][0].update(makespan_ns=1.5),
    "a negative time": lambda document: document["copies"][0].update(busy_ns=-1),
    "a ratio above one": lambda document: document["overlap"][0].update(ratio=1.01),
    "a null measure": lambda document: document["summary"].update(hidden=None),
    "a word for a size": lambda document: document["copies"][0]["histogram"].update(big=1),
    "an unknown direction": lambda document: document["copies"][0].update(direction="up"),
    "an unknown kind of call": lambda document: document["syncs"][0].update(kind="slow"),
    "an unknown finding": lambda document: document["findings"][0].update(id="bad"),
    "a scope by name": lambda document: document["overlap"][0].update(scope="forward 1"),
}


@pytest.mark.parametrize("broken", BROKEN)
def test_the_schema_catches_a_broken_report(broken: str) -> None:
    document = deepcopy(parsed(faulty()))
    BROKEN[broken](document)
    assert list(VALIDATOR.iter_errors(document))


@pytest.mark.parametrize(
    ("result", "definition"),
    [
        (report.TraceInfo, "trace"),
        (report.Layer, "layer"),
        (report.Overlap, "overlap"),
        (report.ExposedCopy, "exposed_copy"),
        (report.CopyFit, "fit"),
        (report.CopyGroup, "copies"),
        (report.Migration, "migration"),
        (report.Sync, "sync"),
        (report_links.Lane, "lane"),
        (report_links.Stage, "stage"),
        (report_links.Storage, "storage"),
        (report_links.Inbound, "inbound"),
        (report_links.NicTraffic, "network"),
        (report.Finding, "finding"),
        (report.Abstention, "abstention"),
    ],
)
def test_schema_and_results_have_the_same_fields(result: type, definition: str) -> None:
    renamed = {
        "copy_class": "class",
        "transfer_class": "class",
        "n_bytes": "bytes",
        "range_name": "range",
        "beside": "with",
    }
    described = schema()["$defs"][definition]
    assert {renamed.get(field.name, field.name) for field in fields(result)} == set(described["properties"])


def test_forward_and_summary_in_the_schema_have_all_measures() -> None:
    measures = {field.name for field in fields(report.Measures)}
    own = {field.name for field in fields(report.Forward)} - {"measures"}
    assert set(schema()["$defs"]["forward"]["properties"]) == measures | own
    assert set(schema()["$defs"]["summary"]["properties"]) == measures | {"forwards"}
    assert tuple(schema()["$defs"]["accounting"]["properties"]) == CATEGORIES
