"""Makes each block of a PyTorch model its own compute range, without touching the model's code.

``annotate_model(model)`` hooks the blocks; ``.remove()``, or leaving its ``with`` block, takes the hooks away. When no
profiler is attached no hook is set, and the model runs as fast as it did.

**Compiled models are left as they are.** A block that was compiled on its own (``block.compile()`` or
``torch.compile(block)``) gets its range around the compiled call. Inside a compiled region the hooks do nothing, so
they neither break its graph nor are recorded in it: a model that is compiled as a whole has no Python between its
layers, and hence no ranges of layers; ``annotate_model`` warns then. Compile first, annotate afterwards.
"""

from __future__ import annotations

import difflib
import itertools
import threading
import warnings
from typing import TYPE_CHECKING, Any

from instrument.ranges import Range, SilentRange, compute
from instrument.ranges import forward as forward_range

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from torch import nn


class ModelRanges:
    """The hooks of one annotated model: ``remove()`` them, or use it in ``with``; ``blocks`` says how many layers."""

    def __init__(self, blocks: int, removers: list[Callable[[], None]]) -> None:
        self.blocks = blocks
        self._removers = removers

    def remove(self) -> None:
        """Take every hook away; calling it again does nothing."""
        while self._removers:
            self._removers.pop()()

    def __enter__(self) -> ModelRanges:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def annotate_model(
    model: nn.Module,
    layers: str | Sequence[nn.Module] | None = None,
    *,
    forward: bool = False,
    warmup: int = 0,
) -> ModelRanges:
    """Make each block's forward the range ``compute layer i``, and with ``forward`` each pass its own ``forward n``.

    ``layers`` is the dotted name of the container of the blocks, a sequence of the blocks themselves, or None for the
    longest ``ModuleList`` that lies in no other. Passes count from ``-warmup``, so that the first ones are warm-up.
    Works under ``torch.no_grad`` and when a block raises. Raises TypeError for what is no module, ValueError when the
    blocks cannot be found, or when one module stands for two layers.
    """
    blocks = _blocks(model, layers)
    removers: list[Callable[[], None]] = []
    if isinstance(compute(0), SilentRange):
        return ModelRanges(len(blocks), removers)
    for index, block in enumerate(blocks):
        removers.append(_annotate(block, itertools.repeat(compute(index))))
    if forward:
        removers.append(_annotate(model, map(forward_range, itertools.count(-warmup))))
    if _compiled(model):
        warnings.warn(
            "the model is compiled as a whole, so its layers cannot be told apart: compile its blocks one by one "
            "(for block in model.layers: block.compile()) to get a range for each",
            stacklevel=2,
        )
    return ModelRanges(len(blocks), removers)


def _blocks(model: nn.Module, layers: str | Sequence[nn.Module] | None) -> list[nn.Module]:
    _check_module(model, "the model")
    if layers is None:
        blocks = _longest_list(model)
    elif isinstance(layers, str):
        blocks = _container(model, layers)
    else:
        blocks = _listed(layers)
    for index, block in enumerate(blocks):
        _check_module(block, f"layer {index}")
    if not blocks:
        raise ValueError("there are no layers to annotate: pass layers=, the dotted name of the list of blocks")
    numbers: dict[int, int] = {}
    for index, block in enumerate(blocks):
        first = numbers.setdefault(id(block), index)
        if first != index:
            raise ValueError(f"layers {first} and {index} are one module, so its calls cannot be told apart")
    return blocks


def _check_module(module: object, what: str) -> None:
    from torch import nn

    if not isinstance(module, nn.Module):
        raise TypeError(f"{what} is an object of type {type(module).__name__}, and not a torch.nn.Module")


def _listed(layers: Any) -> list[nn.Module]:
    """Return the blocks of a container; those of a ModuleDict without their keys."""
    try:
        return list(layers.values() if hasattr(layers, "values") else layers)
    except TypeError:
        found = type(layers).__name__
        raise TypeError(f"layers is a dotted name or a list of modules, not an object of type {found}") from None


def _longest_list(model: nn.Module) -> list[nn.Module]:
    lists = [list(module) for _, module in _outer_lists(model)]
    if not lists:
        raise ValueError(f"{type(model).__name__} has no ModuleList: pass layers=, a dotted name or a list of modules")
    return max(lists, key=len)


def _outer_lists(module: nn.Module, name: str = "") -> Iterator[tuple[str, nn.ModuleList]]:
    """Yield the ModuleLists that lie in no other: the experts of a block are not its model's layers."""
    from torch import nn

    if isinstance(module, nn.ModuleList):
        yield name, module
        return
    for child_name, child in module.named_children():
        yield from _outer_lists(child, f"{name}.{child_name}".lstrip("."))


def _container(model: nn.Module, name: str) -> list[nn.Module]:
    containers: dict[str, Any] = {key: module for key, module in model.named_modules() if hasattr(module, "__iter__")}
    if name not in containers:
        near = difflib.get_close_matches(name, containers, n=3, cutoff=0.3) or sorted(containers)[:3]
        choices = ", ".join(key for key in near if key) or "none"
        raise ValueError(f"{type(model).__name__} has no list of modules named {name!r}; near matches: {choices}")
    return _listed(containers[name])


def _compiled(module: nn.Module) -> bool:
    # by name, because importing torch._dynamo only to ask takes seconds
    return type(module).__name__ == "OptimizedModule" or module._compiled_call_impl is not None


def _annotate(module: nn.Module, around: Iterator[Range]) -> Callable[[], None]:
    """Open the next range of ``around`` for each call of ``module``; returns what undoes it."""
    if module._compiled_call_impl is not None:
        return _wrap_compiled_call(module, around)
    return _hook(module, around)


def _wrap_compiled_call(module: Any, around: Iterator[Range]) -> Callable[[], None]:
    """Wrap what ``module.compile()`` left: hooks would be traced into the compiled region."""
    compiled = module._compiled_call_impl

    def call(*args: Any, **kwargs: Any) -> Any:
        with next(around):
            return compiled(*args, **kwargs)

    def undo() -> None:
        if module._compiled_call_impl is call:
            module._compiled_call_impl = compiled

    module._compiled_call_impl = call
    return undo


class _Opened(threading.local):
    """The ranges that a module's hooks hold open on this thread, outermost first."""

    def __init__(self) -> None:
        self.ranges: list[Range] = []


class _Hooks:
    """What runs before and after each call of a module. A copy made by pickling, for another process, does nothing."""

    def __init__(self, around: Iterator[Range] | None = None) -> None:
        self._around = around
        self._opened = _Opened()

    def before(self, module: nn.Module, args: Any) -> None:
        """Open the next range."""
        import torch

        if self._around is None or torch.compiler.is_compiling():
            return
        current = next(self._around)
        self._opened.ranges.append(current)
        current.push()

    def after(self, module: nn.Module, args: Any, output: Any) -> None:
        """Close it."""
        import torch

        # torch also calls this when a hook before ours raised, and then there is nothing of ours to close
        if self._around is None or torch.compiler.is_compiling() or not self._opened.ranges:
            return
        self._opened.ranges.pop().pop()

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Hooks, ())

    def __deepcopy__(self, memo: dict[int, Any]) -> _Hooks:
        return self


def _hook(module: nn.Module, around: Iterator[Range]) -> Callable[[], None]:
    hooks = _Hooks(around)
    first = module.register_forward_pre_hook(hooks.before, prepend=True)
    last = module.register_forward_hook(hooks.after, always_call=True)

    def undo() -> None:
        first.remove()
        last.remove()

    return undo
