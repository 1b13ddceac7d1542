"""The first line of a comparison says what a reviewer asks first, whatever changed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from traceview.analysis.compare import Comparison, Side, compare
from traceview.analysis.compare_measures import Key, Sample
from traceview.analysis.compare_setting import Setting
from traceview.render.diff_headline import headline, summary
from traceview.render.diff_layout import layout
from traceview.render.page import draw_markdown, draw_text

STEADY = (10.00e6, 10.02e6, 10.01e6, 9.99e6, 10.03e6)


def side(setting: Setting | None = None, **values: Sequence[float]) -> Side:
    names = {name: Key(name.partition("__")[0], name.partition("__")[2].replace("_", " ")) for name in values}
    forwards = zip(*values.values(), strict=True)
    samples = tuple(Sample(dict(zip(names.values(), one, strict=True))) for one in forwards)
    return Side(("run.sqlite",), samples, setting or Setting())


def told(base: Side, new: Side) -> str:
    return summary(compare(base, new))


def test_slower_or_faster_as_a_whole() -> None:
    slow = tuple(value * 1.2 for value in STEADY)
    assert told(side(makespan_ns=STEADY), side(makespan_ns=slow)) == (
        "Regressed: a forward takes 12.01 ms instead of 10.01 ms (+20 %)."
    )
    assert told(side(makespan_ns=slow), side(makespan_ns=STEADY)).startswith(
        "Improved: a forward takes 10.01 ms instead"
    )


def test_the_same() -> None:
    assert told(side(makespan_ns=STEADY), side(makespan_ns=STEADY)) == (
        "Same: a forward takes 10.01 ms, before 10.01 ms; no measure of 1 changed."
    )


def test_the_same_though_hardly_anything_could_have_shown() -> None:
    wild = (6e6, 14e6, 9e6, 12e6, 8e6)
    assert "a change of up to 67 % might not have shown" in told(side(makespan_ns=wild), side(makespan_ns=wild))


def test_a_layer_that_regressed_behind_compute() -> None:
    base = side(makespan_ns=STEADY, layer_load_busy_ns__layer_3=[1e6] * 5)
    new = side(makespan_ns=STEADY, layer_load_busy_ns__layer_3=[1.05e6] * 5)
    assert told(base, new) == (
        "Regressed: load of layer 3 +5.0 %; the makespan stays the same: 10.01 ms, before 10.01 ms."
    )


def test_faster_though_something_that_is_never_excused_got_worse() -> None:
    slow = tuple(value * 1.2 for value in STEADY)
    base = side(makespan_ns=slow, accidental_calls=[0] * 5)
    new = side(makespan_ns=STEADY, accidental_calls=[2] * 5)
    assert told(base, new) == (
        "Regressed: accidental calls +2 though a forward takes 10.01 ms instead of 12.01 ms (-17 %)."
    )


def test_what_cannot_be_told() -> None:
    few = side(makespan_ns=STEADY[:2])
    assert told(few, side(makespan_ns=STEADY)) == (
        "Cannot tell: 2 against 5 samples where it takes 3 a side, so capture more."
    )
    assert told(side(makespan_ns=STEADY), side(load_rate=[1.0] * 5)).startswith("Cannot tell: only the base side has")
    other = Setting(layers=frozenset({16}))
    base = side(Setting(layers=frozenset({8})), makespan_ns=STEADY, load_rate=[50.0] * 5)
    new = side(other, makespan_ns=[42e6] * 5, load_rate=[50.0] * 5)
    assert told(base, new).startswith("Cannot tell: other layer count: 8 against 16 (1 of 2 measures")
    worse = side(other, makespan_ns=[42e6] * 5, load_rate=[20.0] * 5)
    assert told(base, worse) == ("Regressed: load rate -60 %; the makespan, 42 ms and before 10.01 ms, cannot be told.")


def test_what_can_be_told_is_told_beside_what_cannot() -> None:
    slow = tuple(value * 1.2 for value in STEADY)
    base, new = side(makespan_ns=slow, load_rate=[50.0] * 5), side(makespan_ns=STEADY)
    assert told(base, new) == (
        "Cannot tell: 1 of 2 measures, load rate for one: only the base side has it; the others did not regress, "
        "and a forward takes 10.01 ms instead of 12.01 ms (-17 %, improved)."
    )


def test_the_side_without_forwards_is_named() -> None:
    with_forwards, without = Setting(layers=frozenset({8})), Setting()
    base, new = side(with_forwards, busy_share=[0.5]), side(without, busy_share=[0.5])
    told_of = summary(compare(base, new, sampled="files"))
    assert told_of.startswith("Cannot tell: no measured forward on the new side (--forward-range names ")
    assert "no measured forward on either side" in summary(compare(new, new, sampled="files"))
    page = draw_text(layout(compare(base, new, sampled="files")))
    assert "run.sqlite · forwards left aside · 8 layers" in page
    assert "run.sqlite · no measured forwards" in page


def test_a_count_changes_by_so_many_however_few_there_were() -> None:
    base = side(makespan_ns=STEADY, load_pieces=[8] * 5)
    new = side(makespan_ns=STEADY, load_pieces=[8192] * 5)
    assert "load pieces +8,184;" in told(base, new)
    assert "load pieces -8,184;" in told(new, base)


def test_only_what_changed_is_short_where_nothing_did() -> None:
    same = side(makespan_ns=STEADY, layer_load_busy_ns__layer_3=[1e6] * 5)
    assert layout(compare(same, same), only_changed=True).sections == ()
    assert "Layers" in [section.title for section in layout(compare(same, same)).sections]


def compared(n: int) -> Comparison:
    values = [10e6 + 1e4 * (7 * index % 5) for index in range(n)]
    slow = [1.3 * value for value in values]
    return compare(
        side(makespan_ns=values, host=[0.0] * n), side(makespan_ns=slow, host=[3e6 + value / 100 for value in values])
    )


@pytest.mark.parametrize(
    ("n", "rule"),
    [
        (3, "3 against 3 samples: too few for a test, so a change exceeds both spreads together, and 2 %."),
        (
            20,
            "20 against 20 samples: rank tests, corrected for 2 measures so that 1 in 20 diffs at most errs, and 2 %.",
        ),
    ],
)
def test_the_rule_by_which_a_difference_counts_is_told(n: int, rule: str) -> None:
    lines = ["".join(part.text for part in line) for line in headline(compared(n))]
    assert lines[1].startswith("Where it went: host +3.1")
    assert lines[-1] == rule


@pytest.mark.parametrize("only_changed", [False, True])
def test_the_same_page_is_drawn_as_text_and_as_markdown(only_changed: bool) -> None:
    page = layout(compared(5), only_changed=only_changed)
    text, markdown = draw_text(page), draw_markdown(page)
    assert text.splitlines()[0] == "Regressed: a forward takes 13.03 ms instead of 10.02 ms (+30 %)."
    assert markdown.startswith("**Regressed:** a forward takes 13.03 ms instead of 10.02 ms (+30 %).")
    assert "makespan" in text
    assert "| makespan |" in markdown
    assert max(map(len, text.splitlines())) <= 100
    assert draw_text(page, ascii_only=True).isascii()
