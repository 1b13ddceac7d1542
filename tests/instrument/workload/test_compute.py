"""How the compute of a layer gets the wanted length, and what the pool is filled with."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from instrument.workload.compute import calibrate, square_side  # noqa: E402
from instrument.workload.pools import fill  # noqa: E402

pytestmark = pytest.mark.torch


def machine(ns_per_tile: float, launch_ns: float):
    """Return a device on which time grows in steps of 128 rows."""
    return lambda matmuls, rows: matmuls * (launch_ns + ns_per_tile * -(-rows // 128))


@pytest.mark.parametrize("target_ns", [50_000, 300_000, 1_340_000, 20_000_000])
def test_compute_gets_as_close_to_the_wanted_length_as_whole_tiles_allow(target_ns) -> None:
    measure = machine(ns_per_tile=5_400, launch_ns=2_000)
    size = calibrate(target_ns, measure)
    assert abs(size.measured_ns - target_ns) <= size.matmuls * 5_400 / 2
    assert size.measured_ns == round(measure(size.matmuls, size.rows))
    assert size.rows <= 32768


def test_a_length_below_one_product_gives_the_smallest() -> None:
    size = calibrate(10, machine(ns_per_tile=5_000, launch_ns=0))
    assert (size.matmuls, size.rows) == (1, 128)


@pytest.mark.parametrize(("layer_bytes", "side"), [(64 << 20, 4096), (1 << 20, 704), (16384, 64), (512, 16)])
def test_the_weights_fit_into_a_layer(layer_bytes, side) -> None:
    assert square_side(layer_bytes) == side
    assert side * side * 2 <= layer_bytes


def test_the_pool_holds_numbers_that_are_finite_and_reproducible() -> None:
    first, again, other = (np.zeros(1 << 20, dtype=np.uint8) for _ in range(3))
    fill(first, seed=3)
    fill(again, seed=3)
    fill(other, seed=4)
    np.testing.assert_array_equal(first, again)
    assert np.count_nonzero(first == other) < len(first) // 100
    values = torch.from_numpy(first).view(torch.bfloat16)
    assert bool(torch.isfinite(values).all())
    assert float(values.abs().max()) < 2
