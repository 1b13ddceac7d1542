"""The file that stands for storage: written where there is none, read whole, never half."""

from __future__ import annotations

import os

import numpy as np
import pytest

from instrument.errors import InstrumentError
from instrument.workload.options import Storage
from instrument.workload.plan import Shape
from instrument.workload.range_set import RangeSet, no_ranges
from instrument.workload.storage import read_all, storage_reader

SHAPE = Shape(layers=3, layer_bytes=8192)


@pytest.fixture
def pool() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, SHAPE.pool_bytes, dtype=np.uint8)


@pytest.mark.parametrize("staged", [True, False])
def test_a_layer_is_read_before_its_load(tmp_path, pool, staged) -> None:
    content = pool.copy()
    with storage_reader(Storage(str(tmp_path / "kv"), staged=staged), SHAPE, pool, no_ranges()) as reader:
        pool[:] = 0
        reader.forget_cache()
        reader.before_load(1)
        np.testing.assert_array_equal(pool[8192:16384], content[8192:16384])
        assert not pool[:8192].any()
        assert not pool[16384:].any()
        times = reader.take_times()
    assert times["storage_read_ns"] > 0
    assert (times["stage_ns"] > 0) is staged
    assert reader.take_times() == {"storage_read_ns": 0, "stage_ns": 0}


def test_pages_that_hold_all_layers_are_read_before_the_first(tmp_path, pool) -> None:
    shape = Shape(layers=3, layer_bytes=8192, layout="page-first", page_tokens=4, token_bytes=512)
    content = pool.copy()
    with storage_reader(Storage(str(tmp_path / "kv")), shape, pool, no_ranges()) as reader:
        pool[:] = 0
        reader.before_load(0)
        np.testing.assert_array_equal(pool, content)
        pool[:] = 0
        reader.before_load(1)
        assert not pool.any()


def test_reading_and_staging_have_ranges_of_their_own(tmp_path, pool) -> None:
    names: list[tuple[str, int]] = []
    silent = no_ranges()

    def noted(name: str):
        def range_of(n_bytes: int):
            names.append((name, n_bytes))
            return silent.stage(n_bytes)

        return range_of

    ranges = RangeSet(silent.forward, silent.load, silent.compute, noted("read"), noted("stage"))
    with storage_reader(Storage(str(tmp_path / "kv")), SHAPE, pool, ranges) as reader:
        reader.before_load(0)
    assert names == [("read", 8192), ("stage", 8192)]


def test_an_existing_file_is_read_and_never_written(tmp_path, pool) -> None:
    path = tmp_path / "kv"
    path.write_bytes(bytes(SHAPE.pool_bytes))
    with storage_reader(Storage(str(path)), SHAPE, pool, no_ranges()) as reader:
        reader.before_load(0)
    assert not pool[:8192].any()
    assert path.read_bytes() == bytes(SHAPE.pool_bytes)


def test_a_file_of_another_size_is_refused(tmp_path, pool) -> None:
    (tmp_path / "kv").write_bytes(b"notes")
    with (
        pytest.raises(InstrumentError, match="kv has 5 bytes, the pool 24576"),
        storage_reader(Storage(str(tmp_path / "kv")), SHAPE, pool, no_ranges()),
    ):
        pass
    assert (tmp_path / "kv").read_bytes() == b"notes"


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path, pool) -> None:
    with (
        pytest.raises(InstrumentError, match="cannot be written"),
        storage_reader(Storage(str(tmp_path / "none" / "kv")), SHAPE, pool, no_ranges()),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_ends_early_is_no_data(tmp_path) -> None:
    path = tmp_path / "kv"
    path.write_bytes(b"12345")
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(InstrumentError, match="ends after 5 bytes"):
            read_all(descriptor, np.zeros(8, dtype=np.uint8), 0)
    finally:
        os.close(descriptor)
