"""Puts a range around the calls of a function, whatever kind of function it is."""

from __future__ import annotations

import functools
import inspect
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator

    from .ranges import Range

    Function = Callable[..., Any]
    Chooser = Callable[[tuple[Any, ...], dict[str, Any]], Range]


def ranged(function: Any, choose: Chooser, fixed: Range | None = None) -> Any:
    """Return ``function`` with the range that ``choose`` gives for the arguments of each call around that call.

    Results, exceptions, name, signature, attributes and kind stay what they were; only an asynchronous generator
    becomes, for ``inspect``, a plain function that returns one. ``fixed`` is the range when it is the same for every
    call. Both are plain functions, so they are pickled by name, and bind as methods do.
    """
    if isinstance(function, staticmethod | classmethod):
        return type(function)(ranged(function.__func__, choose, fixed))
    if inspect.iscoroutinefunction(function):
        wrapper = _around_coroutine(function, choose)
    elif inspect.isgeneratorfunction(function):
        wrapper = _around_generator(function, choose)
    elif inspect.isasyncgenfunction(function):
        wrapper = _around_async_generator(function, choose)
    elif fixed is not None:
        wrapper = _inside(function, fixed)
    else:
        wrapper = _around_plain(function, choose)
    return _with_attributes_of(function, functools.wraps(function)(wrapper))


def refuse_what_is_no_function(function: object) -> None:
    """Raise TypeError unless ``function`` is one, however it is written, so that a wrapper can stand in for it."""
    plain = getattr(function, "__func__", function)
    if not inspect.isroutine(plain) and not isinstance(plain, functools.partial):
        shown = f"the class {plain.__name__}" if inspect.isclass(plain) else f"an object of type {type(plain).__name__}"
        raise TypeError(f"a range decorates functions and methods, not {shown}: put it around the call, in a with")


def _with_attributes_of(function: Any, wrapper: Function) -> Function:
    """Give ``wrapper`` what a compiled function has beside its call, such as ``cache_clear`` of ``lru_cache``."""
    if not inspect.isfunction(function):
        for name in dir(function):
            if not name.startswith("__") and not hasattr(wrapper, name):
                setattr(wrapper, name, getattr(function, name))
    return wrapper


def _inside(function: Function, fixed: Range) -> Function:
    push, pop = fixed.push, fixed.pop

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        push()
        try:
            return function(*args, **kwargs)
        finally:
            pop()

    return wrapper


def _around_plain(function: Function, choose: Chooser) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with choose(args, kwargs):
            return function(*args, **kwargs)

    return wrapper


def _around_coroutine(function: Function, choose: Chooser) -> Function:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _started(choose(args, kwargs)):
            return await function(*args, **kwargs)

    return wrapper


def _around_generator(function: Function, choose: Chooser) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        with _started(choose(args, kwargs)):
            return (yield from function(*args, **kwargs))

    return wrapper


def _around_async_generator(function: Function, choose: Chooser) -> Function:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return _stepped(choose(args, kwargs), function(*args, **kwargs))

    return wrapper


@contextmanager
def _started(around: Range) -> Iterator[None]:
    """Hold ``around`` open as a start/end range, which need not nest with the other ranges of the thread."""
    number = around.start()
    try:
        yield
    finally:
        around.end(number)


async def _stepped(around: Range, generator: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Run the asynchronous ``generator`` inside the range; what is sent or thrown in reaches it."""
    with _started(around):
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
