"""Puts a range around the calls of a function, whatever kind of function it is."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator

    from .ranges import Range

    Function = Callable[..., Any]


def ranged(around: Range, function: Any) -> Any:
    """Return ``function`` with the range ``around`` each call; its name, signature and kind stay what they were.

    Only the kind of an asynchronous generator does not: ``inspect`` sees a plain function that returns one.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(ranged(around, function.__func__))
    if inspect.iscoroutinefunction(function):
        wrapper = _around_coroutine(around, function)
    elif inspect.isgeneratorfunction(function):
        wrapper = _around_generator(around, function)
    elif inspect.isasyncgenfunction(function):
        wrapper = _around_async_generator(around, function)
    else:
        wrapper = _around_plain(around, function)
    return functools.wraps(function)(wrapper)


def _around_plain(around: Range, function: Function) -> Function:
    push, pop = around.push, around.pop

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        push()
        try:
            return function(*args, **kwargs)
        finally:
            pop()

    return wrapper


def _around_coroutine(around: Range, function: Function) -> Function:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return await awaited(around, function(*args, **kwargs))

    return wrapper


def _around_generator(around: Range, function: Function) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (yield from stepped(around, function(*args, **kwargs)))

    return wrapper


def _around_async_generator(around: Range, function: Function) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return async_stepped(around, function(*args, **kwargs))

    return wrapper


def carrier(function: Any) -> Callable[[Range, Any], Any] | None:
    """Return what carries a range over the steps of a call of ``function``; None for a plain function."""
    if inspect.iscoroutinefunction(function):
        return awaited
    if inspect.isgeneratorfunction(function):
        return stepped
    if inspect.isasyncgenfunction(function):
        return async_stepped
    return None


@contextmanager
def started(around: Range) -> Iterator[None]:
    """Hold ``around`` open as a start/end range, which need not nest with the other ranges of the thread."""
    number = around.start()
    try:
        yield
    finally:
        around.end(number)


async def awaited(around: Range, awaitable: Awaitable[Any]) -> Any:
    """Await ``awaitable`` inside the range; it opens at the first step."""
    with started(around):
        return await awaitable


def stepped(around: Range, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Run ``generator`` inside the range, from its first step until it ends, raises or is closed."""
    with started(around):
        return (yield from generator)


async def async_stepped(around: Range, generator: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Run the asynchronous ``generator`` inside the range; what is sent or thrown in reaches it."""
    with started(around):
        try:
            item = await anext(generator)
            while True:
                try:
                    sent = yield item
                except GeneratorExit:  # noqa: PERF203  something can be thrown in at each step
                    await generator.aclose()
                    raise
                except BaseException as error:
                    item = await generator.athrow(error)
                else:
                    item = await generator.asend(sent)
        except StopAsyncIteration:
            return
