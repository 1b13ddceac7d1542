"""What a run says about itself in a few lines."""

from __future__ import annotations

from copy import deepcopy

from instrument.workload.outcome import summary

LINE = {
    "machine": {"gpu": "NVIDIA H200"},
    "bytes": {"forward": 512 << 20, "pieces_per_layer": 1024},
    "plain_copy": {"bytes_per_s": 55_400_000_000},
    "forwards": [
        {"makespan_ns": ns, "first_layer_exposed_ns": 1_230_000, "load_span_bytes_per_s": 55_000_000_000}
        for ns in (11_000_000, 99_000_000, 12_000_000)
    ],
    "verification": [{"layer": 0, "wrong_bytes": 0}],
}


def test_a_run_is_summed_up_by_its_medians() -> None:
    assert summary(LINE) == (
        "NVIDIA H200: 3 forwards of 512 MiB in 1,024 pieces per layer\n"
        "makespan 12.000 ms, first layer waited 1.230 ms\n"
        "load 55.0 GB/s over its span, a plain copy 55.4 GB/s\n"
        "data: every byte on the device is right"
    )


def test_wrong_bytes_are_counted_also_those_written_back() -> None:
    line = deepcopy(LINE)
    line["verification"][0]["wrong_bytes"] = 3
    line["writeback_verification"] = [{"layer": 0, "wrong_bytes": 4}]
    assert summary(line).endswith("data: 7 bytes wrong")
