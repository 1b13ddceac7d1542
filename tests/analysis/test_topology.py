"""What ``nvidia-smi topo -m`` prints, in the forms in which people save it."""

from __future__ import annotations

import pytest

from traceview.analysis.topology import parse_topology
from traceview.errors import UsageError

TWO_SOCKETS = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tNV18\tSYS\tPIX\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU1\tNV18\t X \tSYS\tPXB\tSYS\t0-47,96-143\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\tNODE\t48-95,144-191\t1\t\tN/A\n"
    "NIC0\tPIX\tPXB\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tSYS\t X \t\t\t\t\n"
    "\n"
    "Legend:\n\n  X    = Self\n  NV#  = Connection traversing a bonded set of # NVLinks\n\n"
    "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_bond_1\n"
)


def test_relations_affinities_and_names() -> None:
    found = parse_topology(TWO_SOCKETS)
    assert found.between("GPU0", "GPU1") == found.between("GPU1", "GPU0") == "NV18"
    assert found.between("NIC0", "GPU1") == "PXB"
    assert found.between("GPU0", "GPU7") is None
    assert found.numa == {"GPU0": 0, "GPU1": 0, "GPU2": 1}
    assert found.cpus["GPU2"] == "48-95,144-191"
    assert found.nic_names == {"NIC0": "mlx5_0", "NIC1": "mlx5_bond_1"}


def test_nvlinks_are_counted() -> None:
    found = parse_topology(TWO_SOCKETS)
    assert (found.nvlinks(0, 1), found.nvlinks(1, 0), found.nvlinks(0, 2), found.nvlinks(0, 9)) == (18, 18, 0, 0)


def test_a_nic_belongs_to_the_gpu_that_is_nearest() -> None:
    found = parse_topology(TWO_SOCKETS)
    assert found.nearest_gpus("mlx5_0") == found.nearest_gpus("NIC0") == (0,)
    assert found.nearest_gpus("mlx5_bond_1") == (2,)
    assert found.nearest_gpus("mlx5_9") == ()


def test_a_single_gpu_has_no_relations() -> None:
    found = parse_topology("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\t\tN/A\n\nLegend:\n")
    assert found.relations == {}
    assert found.numa == {"GPU0": 0}


@pytest.mark.parametrize(
    "text",
    [
        # spaces instead of tabs, indented, in the middle of a log
        "driver 580\n    GPU0     GPU1     CPU Affinity    NUMA Affinity\n"
        "    GPU0      X       NV4      0-23            0\n    GPU1     NV4       X       24-47           1\nbye\n",
        # no empty cell before the first name
        "GPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV4\t0-23\t0\nGPU1\tNV4\t X \t24-47\t1\n",
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\r\nGPU0\tX\tNV4\t0-23\t0\r\nGPU1\tNV4\tX\t24-47\t1\r\n",
    ],
)
def test_ways_in_which_the_output_gets_saved(text: str) -> None:
    found = parse_topology(text)
    assert found.nvlinks(0, 1) == 4
    assert found.numa == {"GPU0": 0, "GPU1": 1}


def test_older_output_names_the_nics_themselves() -> None:
    found = parse_topology("\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\nGPU0\t X \tPHB\tPIX\t0-9\nGPU1\tPHB\t X \tSYS\t0-9\n")
    assert found.nic_names == {"mlx5_0": "mlx5_0"}
    assert found.nearest_gpus("mlx5_0") == (0,)


@pytest.mark.parametrize("text", ["", "nothing here\n", "GPU 0: NVIDIA H200\n", "\tGPU0\tGPU1\tGPU2\nbroken\n"])
def test_what_is_no_matrix_is_refused_with_the_command_to_type(text: str) -> None:
    with pytest.raises(UsageError, match=r"nvidia-smi topo -m"):
        parse_topology(text)


CUT_OFF = {
    "after the head": "\tGPU0\tGPU1\tCPU Affinity\n",
    "after a row": "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-9\n",
    "inside a row": "\tGPU0\tGPU1\tNIC0\tCPU Affinity\nGPU0\t X \tNV4\tPIX\t0-9\nGPU1\tNV4",
}


@pytest.mark.parametrize("text", CUT_OFF.values(), ids=CUT_OFF)
def test_a_matrix_that_is_cut_off_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"cut off: it has no whole row for GPU[01]") as refused:
        parse_topology(text, "topo.txt")
    assert refused.value.hint == "save it with: nvidia-smi topo -m > topology.txt"
