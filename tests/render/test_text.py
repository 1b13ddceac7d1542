from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_samples import MS, SAMPLES, copies, faulty, healthy, without_forwards, without_layers
from rich.cells import cell_len

from traceview.render.text import render
from traceview.report import Report, Summary

SGR = re.compile(r"\x1b\[[0-9;]*m")
BEGINNING = """\
The load hides behind compute: 11.8 ms a forward, 98 % of the ideal 11.61 ms.
Before anything overlaps, the first layer takes 1.226 ms.
sample.sqlite · GPU 0: NVIDIA H200
nsys 2025.3.2.474, schema 3.20.3 · 612 ms captured, 1 process
3 forwards measured, 8 layers by NVTX names, 1 left out as warm-up

Median forward
  forward 3 (index 3, process 41, GPU 0), median of 3, makespans 11.798 to 11.818 ms
  taken  ████████████████████████████████████████████████████████████████████▓▓▓▓▓▓▓▓·  11.802 ms
  ideal  ████████████████████████████████████████████████████████████████████▓▓▓▓▓▓▓▓   11.606 ms
  category         ms  share  median ms  the time when
  █ compute    10.390   88 %     10.390  the device computes
  ▓ load_copy   1.217   10 %      1.217  a layer waits for its load while copies run
  · launch      0.195  1.7 %      0.195  launch latency, event wake-up
  makespan     11.802            11.802
  nothing on load_gap, stream_queue, engine_queue, sync, implicit_sync, submit, host, sm_busy
"""


def titles(text: str) -> list[str]:
    """Return the titles of the sections, in order."""
    return [block.split("\n")[0].split("  ")[0] for block in text.split("\n\n")[1:]]


def test_a_healthy_run_begins_with_the_verdict_and_the_median_forward() -> None:
    assert render(healthy()).startswith(BEGINNING)


@pytest.mark.parametrize("sample", SAMPLES)
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("width", [80, 90, 100])
def test_no_line_is_wider_than_asked_for(sample: str, width: int, ascii_only: bool) -> None:
    for line in render(SAMPLES[sample](), width=width, ascii_only=ascii_only).splitlines():
        assert cell_len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_wide_terminal_gets_no_more_than_100_columns_and_a_tiny_one_no_less_than_80(sample: str) -> None:
    report = SAMPLES[sample]()
    assert render(report, width=250) == render(report, width=100)
    assert render(report, width=10) == render(report, width=80)


@pytest.mark.parametrize("sample", SAMPLES)
def test_colour_adds_colours_and_nothing_else(sample: str) -> None:
    plain = render(SAMPLES[sample]())
    coloured = render(SAMPLES[sample](), colour=True)
    assert "\x1b" not in plain
    assert SGR.search(coloured)
    assert [line.rstrip() for line in SGR.sub("", coloured).splitlines()] == plain.splitlines()


def test_the_environment_has_no_say(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, coloured = render(healthy()), render(healthy(), colour=True)
    for variable, value in (("NO_COLOR", "1"), ("FORCE_COLOR", "1"), ("COLUMNS", "20"), ("TERM", "dumb")):
        monkeypatch.setenv(variable, value)
    assert render(healthy()) == plain
    assert render(healthy(), colour=True) == coloured


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_terminal_without_block_characters_gets_ascii(sample: str) -> None:
    assert render(SAMPLES[sample](), ascii_only=True).isascii()


def test_hostile_names_are_text() -> None:
    text = render(faulty())
    assert "[red]<script>alert(1)</script>" in text
    assert not any(ord(character) < 32 for character in text if character != "\n")
    assert "\u202e" not in text
    assert len(text.splitlines()) < 130


def test_findings_stand_above_the_details_and_not_on_a_healthy_run() -> None:
    text = render(faulty())
    assert titles(text)[:2] == ["Findings", "Median forward"]
    assert "pageable_source  59.1 ms (74 %), high" in text
    assert "→ Pin it." in text
    assert "host_bound  421 µs (0.5 %, from geometry), low" in text
    assert titles(render(healthy())) == [
        "Median forward",
        "Layers that lose most",
        "Overlap",
        "Copies",
        "Blocking calls",
        "Not judged",
    ]


def test_the_bar_is_split_as_the_accounting_and_the_ideal_is_on_the_same_scale() -> None:
    lines = render(faulty()).splitlines()
    taken = next(line for line in lines if line.startswith("  taken")).split()[1]
    ideal = next(line for line in lines if line.startswith("  ideal")).split()[1]
    assert len(ideal) / len(taken) == pytest.approx(63.71 / 79.737, abs=0.01)
    assert taken.count("i") / len(taken) == pytest.approx(59.104 / 79.737, abs=0.02)
    assert taken.count("█") / len(taken) == pytest.approx(10.512 / 79.737, abs=0.02)


def test_a_narrow_terminal_loses_no_digit() -> None:
    process = "4194303/0/131"
    report = replace(healthy(), copies=(copies(stream=process, busy_ns=12_345_678_000, pieces=1_234_567),))
    narrow, wide = render(report, width=80), render(report)
    for number in ("12,345.678", "1,234,567", "10.390", "11.802", "55.2 GB/s"):
        assert number in wide
        assert number in narrow
    assert "over span" in wide
    assert "over span" not in narrow


def test_the_layers_that_lose_most_come_first_and_the_rest_is_summed_up() -> None:
    text = render(healthy())
    section = text[text.index("Layers that lose most") : text.index("Overlap")]
    assert "medians over 3 forwards" in section
    assert section.split("\n")[2].split() == ["0", "1.226", "1.215", "1.300", "1", "64", "MiB"]
    assert "the other 7: at most 9 µs each" in section


def test_sizes_of_pieces_are_drawn_one_bar_per_power_of_two() -> None:
    line = next(line for line in render(faulty()).splitlines() if "8,192 from 64 KiB" in line)
    assert "64 KiB  █   ▁" in line
    assert "2.14 µs + 54.9 GB/s" in line
    assert "piece sizes" not in render(healthy())


def test_accidental_calls_come_first_and_calls_that_differ_in_numbers_only_are_one_row() -> None:
    text = render(faulty())
    calls = text[text.index("Blocking calls") : text.index("Lanes")].splitlines()
    assert calls[2].split()[:5] == ["16", "cudaMemcpyAsync", "accidental", "implicit", "d2h"]
    assert "boundary" in "".join(calls[3:])
    assert any("cudaMalloc" in line and "outside forwards" in line for line in calls)


def test_what_warm_up_did_is_in_no_number() -> None:
    slow = healthy().forwards[0]
    slower = replace(slow, measures=replace(slow.measures, makespan_ns=999 * MS, load_bytes=77))
    changed = replace(healthy(), forwards=(slower, *healthy().forwards[1:]))
    assert render(changed) == render(healthy())


def test_only_pairs_that_tell_are_listed_and_the_rest_is_counted() -> None:
    text = render(without_forwards())
    assert "    0  h2d     460.000  compute  900.000        0      0 %       460.000" in text
    assert "4 more pairs with --format json" in text


def test_without_layers_nothing_is_said_that_needs_them() -> None:
    text = render(without_layers())
    assert "efficiency " not in text.split("\n", 3)[3]
    assert "  ideal" not in text
    assert "Layers that lose most" not in text


def test_without_a_load_there_is_no_ideal_and_no_exposure() -> None:
    def unloaded(report: Report) -> Report:
        bare = [replace(one.measures, load_busy_ns=0, load_pieces=0, load_bytes=0) for one in report.forwards]
        pairs = zip(report.forwards, bare, strict=True)
        forwards = tuple(replace(one, measures=measures) for one, measures in pairs)
        return replace(report, forwards=forwards, summary=Summary(len(bare) - 1, bare[-1]))

    text = render(unloaded(healthy()))
    assert "loads none found" in text
    assert "first layer exposed" not in text
    assert "hides" not in text


def test_warnings_of_the_profiler_stand_at_the_top() -> None:
    report = replace(healthy(), trace=replace(healthy().trace, diagnostics=("a", "b", "c", "d", "e")))
    head = render(report).split("\n\n")[0]
    assert "The profiler warned: a" in head
    assert "and 2 more warnings" in head


def test_of_an_even_number_of_forwards_the_lower_median_is_shown_and_called_so() -> None:
    report = healthy()
    measured = [forward for forward in report.forwards if not forward.warmup]
    text = render(replace(report, forwards=(*measured, measured[0])))
    assert f", lower median of {len(measured) + 1}, makespans" in text
    assert f", median of {len(measured)}, makespans" in render(report)
