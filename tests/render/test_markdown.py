from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_samples import SAMPLES, faulty, healthy

from traceview.render.markdown import code, escaped, render
from traceview.render.shown import shown

GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HTML_OURS = re.compile(r"</?(?:br|details|summary|code)>")


def as_html(markdown: str) -> str:
    return str(GITHUB.render(markdown))


@pytest.mark.parametrize("sample", SAMPLES)
def test_tables_have_as_many_cells_in_every_row_as_columns(sample: str) -> None:
    tables = re.findall(r"(?:^\|.*\|\n)+", render(SAMPLES[sample]()), re.MULTILINE)
    for table in tables:
        assert len({row.count("|") for row in table.splitlines()}) == 1


@pytest.mark.parametrize("sample", SAMPLES)
def test_tables_are_tables_and_lists_are_lists(sample: str) -> None:
    markdown = render(SAMPLES[sample]())
    page = as_html(markdown)
    assert page.count("<table>") == len(re.findall(r"^\| -", markdown, re.MULTILINE))
    assert page.count("<details>") == page.count("</details>") <= 1


def test_hostile_names_are_text_and_mention_nobody() -> None:
    markdown = render(faulty())
    assert "<script>" not in as_html(markdown)
    assert HTML_OURS.sub("", as_html(markdown)).count("&lt;script&gt;") > 4
    outside_code = re.sub(r"`[^`]*`|<code>.*?</code>", "", markdown)
    assert "@octocat" not in outside_code
    assert "\u202e" not in markdown
    assert "\x1b" not in markdown


def test_the_verdict_and_the_forward_are_open_and_the_details_folded() -> None:
    markdown = render(healthy())
    open_part, folded = markdown.split("<details>")
    assert open_part.startswith("**The load hides behind compute**: 11.8 ms a forward")
    assert "| `load_copy` | 1.217 | 10 % | 1.217 |" in open_part
    assert "**Overlap**" in folded
    assert "| 0 | 1.226 |" in folded


def test_findings_are_a_list_above_the_forward() -> None:
    markdown = render(faulty())
    assert markdown.index("**pageable\\_source**") < markdown.index("**Median forward**")
    assert "<li><strong>host_bound</strong>  421 µs (0.5 %, from geometry), low\n<ul>" in as_html(markdown)


def test_it_fits_a_comment() -> None:
    assert len(render(faulty())) < 65_536
    many = replace(healthy(), abstained=healthy().abstained * 20)
    assert len(render(many)) < 65_536


@pytest.mark.parametrize(
    "text",
    [
        "# head",
        "- item",
        "1. one",
        "2) two",
        "* star",
        "> quote",
        "=== x",
        "--- x",
        "+ plus",
        "a_b_c *d* **e**",
        "~~no~~",
    ],
)
def test_prose_stays_prose(text: str) -> None:
    report = replace(healthy(), findings=tuple(replace(one, message=text) for one in faulty().findings[1:]))
    item = as_html(render(report)).split("<ul>\n<li>", 1)[1].split("<ul>\n<li>", 1)[1].split("</li>", 1)[0]
    assert item.replace("&gt;", ">") == text


@pytest.mark.parametrize("text", ["@octocat", "see #12", "http://x.example/a", "www.x.example"])
def test_github_makes_no_link_of_prose(text: str) -> None:
    assert "&#8203;" in escaped(text)
    assert text not in escaped(text)


@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_name_in_a_cell_is_one_cell_that_reads_as_the_name(text: str) -> None:
    name = shown(text)
    page = as_html(f"| a | b |\n| --- | --- |\n| {code(name)} | {escaped(name)} |\n")
    cells = re.findall(r"<td>(.*?)</td>", page, re.DOTALL)
    assert len(cells) == 2
    for cell in cells:
        plain = re.sub(r"</?code>", "", cell).replace("\u200b", "")
        for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
            plain = plain.replace(entity, character)
        assert plain == name
