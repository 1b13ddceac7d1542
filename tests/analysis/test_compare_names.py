"""What is folded out of names, and what stays because it names something else."""

from __future__ import annotations

import re

import pytest

from traceview.analysis.compare_names import fold_kernel, fold_range, pattern_of


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("forward 12", "forward #"),
        ("forward -1", "forward #"),
        ("generate", "generate"),
        ("aten::mm, seq = 45328, op_id = 990726", "aten::mm, seq = #, op_id = #"),
        ("aten::mm, sizes = [[8, 128], [128, 64]]", "aten::mm, sizes = [[8, 128], [128, 64]]"),
        (
            "FSDP::pre_forward (encoder.block.14.layer.1), op_id = 314311",
            "FSDP::pre_forward (encoder.block.14.layer.1), op_id = #",
        ),
        ("prefill request=8817 batch=4", "prefill request=# batch=#"),
        ("step 3: decode", "step #: decode"),
        ("buffer at 0x7f8e4c000000", "buffer at #"),
        ("request 123e4567-e89b-12d3-a456-426614174000", "request #"),
    ],
)
def test_range(name: str, folded: str) -> None:
    assert fold_range(name) == folded
    assert re.match(pattern_of(folded), name)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("nvjet_sm90_tst_192x192_64x3_2x1_v_bz_coopB_NNN", "nvjet_sm90_tst_192x192_64x3_2x1_v_bz_coopB_NNN"),
        ("void elementwise<(int)8, float>(int, T2)", "void elementwise<(int)8, float>(int, T2)"),
        ("triton_poi_fused_add_mul_17", "triton_poi_fused_add_mul_#"),
        ("triton_red_fused__to_copy_3d4", "triton_red_fused__to_copy_#"),
        ("kernel_9f3a52c1", "kernel_#"),
        ("[unknown 4711]", "[unknown #]"),
    ],
)
def test_kernel(name: str, folded: str) -> None:
    assert fold_kernel(name) == folded


def test_the_pattern_of_one_range_matches_no_other() -> None:
    assert not re.match(pattern_of("forward #"), "backward 3")
    assert not re.match(pattern_of("generate"), "generate 2")
