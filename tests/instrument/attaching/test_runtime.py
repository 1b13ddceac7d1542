"""Wrapped functions do what they did, inside a range."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
import sys
import types
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from recording_domain import RecordingDomain, listening, silent

from instrument.attaching.wrap_spec import parse_wrap

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

__all__ = ["listening", "silent"]

pytest.importorskip("wrapt", reason="wrapt is not installed")

from instrument.attaching.runtime import register, wrap_in


def make_module() -> Any:
    """A module with one function of each kind."""

    class Pool:
        number = 7

        def load(self, layer_id: int) -> int:
            return layer_id // self.number

        @staticmethod
        def size(layer: int, scale: int = 5) -> int:
            return layer * scale

        @classmethod
        def title(cls, suffix: str) -> str:
            return cls.__name__ + suffix

        @property
        def plain(self) -> int:
            return 1

    class Child(Pool):
        pass

    async def wait(layer: int) -> int:
        await asyncio.sleep(0)
        return layer

    def steps(layer: int) -> Iterator[int]:
        yield layer
        yield layer + 1

    async def events(layer: int) -> AsyncIterator[int]:
        yield layer

    @contextmanager
    def held(layer: int) -> Iterator[int]:
        yield layer

    module = types.ModuleType("toy_kinds")
    vars(module).update(Pool=Pool, Child=Child, wait=wait, steps=steps, events=events, held=held)
    return module


def wrapped(*specs: str) -> Any:
    module = make_module()
    for spec in specs:
        wrap_in(parse_wrap(f"toy_kinds:{spec}"), module)
    return module


def test_methods_of_every_kind_keep_what_they_do(listening: RecordingDomain) -> None:
    module = wrapped(
        "Pool.load=load {layer_id} of {self.number}", "Pool.size=size {layer} {scale}", "Pool.title={cls}{suffix}"
    )
    pool = module.Pool()
    assert (pool.load(14), module.Pool.load(pool, layer_id=21)) == (2, 3)
    assert (pool.size(2), module.Pool.size(2, scale=3)) == (10, 6)
    assert (pool.title("!"), module.Child.title("?")) == ("Pool!", "Child?")
    assert [event for event in listening.log if event != "<"] == [
        ">load 14 of 7", ">load 21 of 7", ">size 2 5", ">size 2 3", ">Pool!", ">Child?",
    ]  # fmt: skip
    assert inspect.signature(module.Pool.load) == inspect.signature(make_module().Pool.load)


def test_an_exception_passes_through_and_closes_the_range(listening: RecordingDomain) -> None:
    module = wrapped("Pool.load=load layer {layer_id}")
    with pytest.raises(TypeError, match="unsupported operand"):
        module.Pool().load("x")
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        module.Pool().load()
    assert listening.log == [">load layer x", "<", ">load layer ?", "<"]


def test_coroutines_and_generators_have_their_range_to_the_end(listening: RecordingDomain) -> None:
    module = wrapped("wait=wait {layer}", "steps=steps {layer}", "events=events {layer}", "held=held {layer}")

    async def drive() -> tuple[int, list[int]]:
        assert inspect.iscoroutinefunction(module.wait)
        return await module.wait(1), [item async for item in module.events(3)]

    assert asyncio.run(drive()) == (1, [3])
    assert list(module.steps(5)) == [5, 6]
    with module.held(7) as layer:
        assert layer == 7
    kinds = ["[wait 1", "]wait 1", "[events 3", "]events 3", "[steps 5", "]steps 5", ">held 7", "<"]
    assert listening.log == kinds


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("Pool.laod=x", "toy_kinds has no Pool.laod (near matches: Pool.load)"),
        ("Pool=x", "toy_kinds:Pool is not a function"),
        ("Pool.plain=x", "toy_kinds:Pool.plain is not a function"),
        ("steps=x {layers}", "toy_kinds:steps has no parameter 'layers' (it has layer)"),
    ],
)
@pytest.mark.usefixtures("listening")
def test_what_turns_out_unwrappable_at_import_is_told_and_left(
    spec: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    module = wrapped(spec)
    line = capsys.readouterr().err
    assert line.startswith(f"traceview attach: {told}")
    assert line.count("\n") == 1
    assert list(module.steps(1)) == [1, 2]


@pytest.mark.usefixtures("silent")
def test_nothing_is_wrapped_when_nobody_listens() -> None:
    """Without a profiler the function is the very same object afterwards."""
    import bisect

    original = bisect.bisect_left
    register(["bisect:bisect_left=bisect {a}"])
    assert bisect.bisect_left is original


class Kernel:
    """A callable that is more than a function, as kernels of Triton are."""

    blocks = 3

    def __call__(self, layer: int) -> int:
        return layer

    def __getitem__(self, grid: int) -> tuple[str, int]:
        return "launcher", grid


KERNEL = Kernel()


def test_objects_that_can_be_called_stay_what_they_are(
    listening: RecordingDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("toy_objects")
    vars(module).update(kernel=KERNEL, part=functools.partial(pow, 2), kept=functools.lru_cache(lambda layer: layer))
    monkeypatch.setattr(KERNEL.__class__, "part", functools.partial(pow, 3), raising=False)
    vars(module).update(Kernel=KERNEL.__class__)
    for spec in ("kernel=kernel {layer}", "part=part", "kept=kept {layer}", "Kernel.part=method"):
        wrap_in(parse_wrap(f"toy_objects:{spec}"), module)
    assert (module.kernel(5), module.kernel[2], module.kernel.blocks) == (5, ("launcher", 2), 3)
    assert isinstance(module.kernel, Kernel)
    assert (module.part(3), module.kept(1), module.kept(1), Kernel().part(2)) == (8, 1, 1, 9)
    assert module.kept.cache_info().hits == 1
    pushed = [entry for entry in listening.log if entry != "<"]
    assert pushed == [">kernel 5", ">part", ">kept 1", ">kept 1", ">method"]
    assert type(pickle.loads(pickle.dumps(module.kernel))) is Kernel


def test_functions_and_bound_methods_are_still_pickled_by_name(
    listening: RecordingDomain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers hand functions to the processes that they start."""
    module = wrapped("steps=steps {layer}", "Pool.load=load layer {layer_id}")
    for value, name in ((module.Pool, "Pool"), (module.steps, "steps")):
        value.__module__, value.__qualname__ = "toy_kinds", name
    monkeypatch.setitem(sys.modules, "toy_kinds", module)
    assert pickle.loads(pickle.dumps(module.steps)) is module.steps
    assert pickle.loads(pickle.dumps(module.Pool().load))(14) == 2
    assert listening.log == [">load layer 14", "<"]
