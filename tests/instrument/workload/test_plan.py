"""Which pieces a load has, in every layout, and the time that no order of work can beat."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instrument.errors import WrongUsageError
from instrument.workload import plan
from instrument.workload.plan import (
    LAYOUTS,
    Shape,
    arranged,
    check_shape,
    ideal_ns,
    make_plan,
    page_order,
    pieces,
    plan_json,
)

PAGED = ("layer-first", "page-first", "page-first-direct")
SMALL = Shape(layers=3, layer_bytes=5 * 4 * 16, page_tokens=4, token_bytes=16, seed=7)


def address_in_pool(shape: Shape, layer: int, page: int, token: int) -> int:
    """Say where a token lies, by counting everything that lies before it, one by one."""
    axes = {
        "layer-first": lambda: [(i, p, t) for i in range(shape.layers) for p in range(shape.pages) for t in tokens],
        "page-first": lambda: [(i, p, t) for p in range(shape.pages) for t in tokens for i in range(shape.layers)],
        "page-first-direct": lambda: [
            (i, p, t) for p in range(shape.pages) for i in range(shape.layers) for t in tokens
        ],
    }
    tokens = range(shape.page_tokens)
    return axes[shape.layout]().index((layer, page, token)) * shape.token_bytes


@pytest.mark.parametrize("layout", PAGED)
def test_every_token_is_taken_from_its_place_and_put_in_its_place(layout: str) -> None:
    shape = replace(SMALL, layout=layout)
    order = page_order(shape)
    for layer in range(shape.layers):
        found = {}
        for source, target, size in pieces(shape, layer).tolist():
            for step in range(0, size, shape.token_bytes):
                found[target + step] = source + step
        expected = {
            (place * shape.page_tokens + token) * shape.token_bytes: address_in_pool(shape, layer, int(page), token)
            for place, page in enumerate(order)
            for token in range(shape.page_tokens)
        }
        assert found == expected


@given(
    layout=st.sampled_from(sorted(LAYOUTS)),
    layers=st.integers(1, 4),
    pages=st.integers(1, 6),
    page_tokens=st.integers(1, 5),
    token_words=st.integers(1, 3),
    piece_words=st.none() | st.integers(1, 9),
    seed=st.integers(0, 3),
)
def test_copying_the_pieces_arranges_the_layer(
    layout, layers, pages, page_tokens, token_words, piece_words, seed
) -> None:
    token_bytes = token_words * 16
    piece_bytes = piece_words * 16 if piece_words and layout == "contiguous" else None
    shape = Shape(layers, pages * page_tokens * token_bytes, layout, page_tokens, token_bytes, piece_bytes, seed)
    check_shape(shape)
    pool = np.random.default_rng(seed).integers(0, 256, shape.pool_bytes, dtype=np.uint8)
    taken = np.zeros(shape.pool_bytes, dtype=int)
    for layer in range(layers):
        buffer = np.zeros(shape.layer_bytes, dtype=np.uint8)
        written = np.zeros(shape.layer_bytes, dtype=int)
        for source, target, size in pieces(shape, layer):
            buffer[target : target + size] = pool[source : source + size]
            written[target : target + size] += 1
            taken[source : source + size] += 1
        assert (written == 1).all()
        np.testing.assert_array_equal(buffer, arranged(pool, shape, layer))
    assert (taken == 1).all()


def test_page_first_has_page_tokens_times_the_pieces_of_layer_first() -> None:
    shapes = {layout: Shape(layers=2, layer_bytes=1 << 20, layout=layout, token_bytes=1024) for layout in PAGED}
    counts = {layout: len(pieces(shape, 1)) for layout, shape in shapes.items()}
    assert counts["layer-first"] == counts["page-first-direct"] == shapes["layer-first"].pages == 16
    assert counts["page-first"] == 64 * counts["layer-first"]


def test_pages_are_shuffled_by_the_seed_alone() -> None:
    shape = Shape(layers=1, layer_bytes=1 << 20, layout="layer-first", token_bytes=256)
    order = page_order(shape).tolist()
    assert order == page_order(shape).tolist() != sorted(order)
    assert page_order(replace(shape, seed=1)).tolist() != order


@pytest.mark.parametrize("layout", ["layer-first", "page-first", "page-first-direct", "contiguous"])
def test_as_many_pieces_are_allowed_as_are_counted(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(2, 1 << 16, layout, 8, 1024) if layout != "contiguous" else Shape(2, 1 << 16, piece_bytes=24 << 10)
    count = len(pieces(shape, 0))
    monkeypatch.setattr(plan, "MOST_PIECES", count)
    check_shape(shape)
    monkeypatch.setattr(plan, "MOST_PIECES", count - 1)
    with pytest.raises(WrongUsageError, match=f"{count} pieces"):
        check_shape(shape)


def test_neighbouring_pages_are_not_merged() -> None:
    shape = Shape(layers=1, layer_bytes=64, layout="layer-first", page_tokens=1, token_bytes=32, seed=0)
    orders = {seed: page_order(replace(shape, seed=seed)).tolist() for seed in range(8)}
    in_order = next(seed for seed, order in orders.items() if order == [0, 1])
    assert pieces(replace(shape, seed=in_order), 0).tolist() == [[0, 0, 32], [32, 32, 32]]


def test_a_contiguous_layer_is_one_piece_unless_it_is_cut() -> None:
    assert pieces(Shape(layers=2, layer_bytes=160), 1).tolist() == [[160, 0, 160]]
    cut = Shape(layers=2, layer_bytes=160, piece_bytes=64)
    assert pieces(cut, 1).tolist() == [[160, 0, 64], [224, 64, 64], [288, 128, 32]]


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (Shape(1, 1 << 20, "diagonal"), "choose one of"),
        (Shape(0, 1 << 20), "at least 1"),
        (Shape(1, 100), "multiple of 16"),
        (Shape(1, 1 << 20, piece_bytes=24), "multiple of 16"),
        (Shape(1, 1 << 20, "page-first", piece_bytes=1024), "--piece-kib"),
        (Shape(1, 1 << 20, "page-first", token_bytes=24), "--token-bytes"),
        (Shape(1, 1 << 20, "page-first", page_tokens=63), "no whole number of pages"),
        (Shape(1, 1 << 36, "page-first", token_bytes=16), "4,294,967,296 pieces, at most 16,777,216"),
        (Shape(1, 1 << 36, piece_bytes=1024), "67,108,864 pieces"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(shape: Shape, words: str) -> None:
    with pytest.raises(WrongUsageError, match=words):
        check_shape(shape)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=1, max_size=6))
def test_the_ideal_is_what_two_machines_in_a_row_need(times: list[tuple[int, int]]) -> None:
    loaded = computed = 0
    for load, compute in times:
        loaded += load
        computed = max(loaded, computed) + compute
    assert ideal_ns([load for load, _ in times], [compute for _, compute in times]) == computed


def test_a_plan_counts_and_times_a_forward() -> None:
    plan = plan_json(make_plan(Shape(layers=4, layer_bytes=1 << 20, layout="page-first"), 2.0, link_gbps=1.048576))
    assert plan["pieces_per_forward"] == 4 * plan["pieces_per_layer"] == 4 * 256
    assert plan["forward_bytes"] == 4 << 20
    assert (plan["load_ns"], plan["compute_ns"]) == (1_000_000, 2_000_000)
    assert plan["ideal_ns"] == 1_000_000 + 4 * 2_000_000
    assert plan["serial_ns"] == 4 * 3_000_000


def test_all_layouts_move_the_same_bytes() -> None:
    shapes = [Shape(layers=2, layer_bytes=1 << 20, layout=layout) for layout in LAYOUTS]
    sums = {int(pieces(shape, layer)[:, 2].sum()) for shape, layer in itertools.product(shapes, range(2))}
    assert sums == {1 << 20}
