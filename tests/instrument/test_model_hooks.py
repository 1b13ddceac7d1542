"""Each block of a PyTorch model is its own compute range."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from recording_domain import RecordingDomain, SilentDomain, listening, silent

from instrument.model_hooks import annotate_model

if TYPE_CHECKING:
    from collections.abc import Iterator

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
nn = torch.nn

__all__ = ["listening", "silent"]

pytestmark = pytest.mark.torch

BLOCKS = [f"{edge}compute layer {layer}" if edge == ">" else "<" for layer in range(3) for edge in "><"]


class Block(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(4, 4) for _ in range(5))
        self.fail = False

    def forward(self, value: Any) -> Any:
        if self.fail:
            raise KeyError("block")
        return torch.relu(self.experts[0](value))


class Model(nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block() for _ in range(3))
        self.heads = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, value: Any) -> Any:
        for layer in self.layers:
            value = layer(value)
        return self.heads[0](value)


@pytest.fixture
def value() -> Iterator[Any]:
    """Inference, as in serving; PyTorch's compiler also warns about gradients that nobody asked for."""
    torch.manual_seed(0)
    with torch.no_grad():
        yield torch.randn(2, 4)


def test_blocks_are_found_ranged_and_released(listening: RecordingDomain, value: Any) -> None:
    """The longest list is taken that lies in no other: a block has more experts than the model has layers."""
    model = Model()
    expected = model(value)
    annotated = annotate_model(model)
    assert annotated.blocks == 3
    assert torch.equal(model(value), expected)
    assert listening.log == BLOCKS
    annotated.remove()
    annotated.remove()
    model(value)
    assert listening.log == BLOCKS
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


@pytest.mark.parametrize("layers", ["layers", "list"])
def test_layers_by_name_and_by_module(listening: RecordingDomain, value: Any, layers: str) -> None:
    model = Model()
    with annotate_model(model, "layers" if layers == "layers" else list(model.layers)), torch.enable_grad():
        model(value).sum().backward()
    model(value)
    assert listening.log == BLOCKS


def test_forwards_count_up_from_the_warm_up(listening: RecordingDomain, value: Any) -> None:
    model = Model()
    with annotate_model(model, forward=True, warmup=1):
        model(value)
        model(value)
    assert listening.log == [">forward -1", *BLOCKS, "<", ">forward 0", *BLOCKS, "<"]


def test_a_block_that_raises_closes_its_range(listening: RecordingDomain, value: Any) -> None:
    model = Model()
    model.layers[1].fail = True
    with annotate_model(model, forward=True):
        with pytest.raises(KeyError):
            model(value)
        model.layers[1].fail = False
        model(value)
    assert listening.log == [">forward 0", *BLOCKS[:4], "<", ">forward 1", *BLOCKS, "<"]


def test_another_hook_that_raises_first_closes_nothing(listening: RecordingDomain, value: Any) -> None:
    def refuse(module: Any, args: Any) -> None:
        raise KeyError("before")

    model = Model()
    with annotate_model(model):
        model.layers[0].register_forward_pre_hook(refuse, prepend=True)
        with pytest.raises(KeyError):
            model(value)
    assert listening.log == []


def test_blocks_compiled_in_place_keep_their_ranges_without_a_graph_break(
    listening: RecordingDomain, value: Any
) -> None:
    """fullgraph makes PyTorch raise at any graph break."""
    model = Model()
    for block in model.layers:
        block.compile(fullgraph=True, backend="eager")
    expected = Model.forward(model, value)
    with annotate_model(model):
        assert torch.equal(model(value), expected)
        model(value)
    assert listening.log == BLOCKS * 2
    model(value)
    assert listening.log == BLOCKS * 2


def test_blocks_wrapped_by_torch_compile_keep_their_ranges(listening: RecordingDomain, value: Any) -> None:
    model = Model()
    for index in range(3):
        model.layers[index] = torch.compile(model.layers[index], fullgraph=True, backend="eager")
    with annotate_model(model):
        model(value)
        model(value)
    assert listening.log == BLOCKS * 2


def test_a_model_compiled_as_a_whole_still_runs_as_one_graph(listening: RecordingDomain, value: Any) -> None:
    model = Model()
    expected = model(value)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    with pytest.warns(UserWarning, match="compiled as a whole"):
        annotated = annotate_model(compiled, forward=True)
    with annotated:
        assert torch.equal(compiled(value), expected)
    assert listening.log == [">forward 0", "<"]


def test_hooks_set_before_compiling_break_no_graph(listening: RecordingDomain, value: Any) -> None:
    model = Model()
    with annotate_model(model):
        torch.compile(model, fullgraph=True, backend="eager")(value)
        assert listening.log == []
        model(value)
    assert listening.log == BLOCKS


def test_nothing_is_hooked_when_nobody_listens(silent: SilentDomain) -> None:
    model = Model()
    assert annotate_model(model, forward=True).blocks == 3
    assert not any(module._forward_hooks for module in model.modules())


@pytest.mark.usefixtures("listening")
def test_what_cannot_be_annotated_is_said() -> None:
    model = Model()
    with pytest.raises(ValueError, match="has no list of modules named 'layer'; near matches: layers"):
        annotate_model(model, "layer")
    with pytest.raises(ValueError, match="Linear has no ModuleList: pass layers="):
        annotate_model(nn.Linear(4, 4))
    with pytest.raises(ValueError, match="layers 0 and 1 are one module"):
        annotate_model(model, [model.layers[0], model.layers[0]])
    with pytest.raises(ValueError, match="there are no layers to annotate"):
        annotate_model(model, [])
    with pytest.raises(TypeError, match=r"the model is an object of type int, and not a torch.nn.Module"):
        annotate_model(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="layers is a dotted name or a list of modules, not an object of type int"):
        annotate_model(model, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="layer 1 is an object of type int"):
        annotate_model(model, [model.layers[0], 1])
    assert not any(module._forward_hooks for module in model.modules())


def test_the_blocks_of_a_dictionary(listening: RecordingDomain, value: Any) -> None:
    model = nn.Module()
    model.layers = nn.ModuleDict({"first": nn.Linear(4, 4), "second": nn.Linear(4, 4)})
    with annotate_model(model, "layers") as ranges:
        model.layers["second"](value)
    assert (ranges.blocks, listening.log) == (2, [">compute layer 1", "<"])


def test_an_annotated_model_can_be_copied_and_pickled(listening: RecordingDomain, value: Any) -> None:
    """A copy writes ranges as the model does; one that went through pickle, perhaps to another process, does not."""
    model = Model()
    annotate_model(model)
    copy.deepcopy(model)(value)
    assert listening.log == BLOCKS
    pickle.loads(pickle.dumps(model))(value)
    assert listening.log == BLOCKS
