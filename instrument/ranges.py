"""Names the work in a program: ``with load(layer):``, ``with compute(layer):``, ``with forward():``.

Each works as a context manager and as a decorator, writes to the NVTX domain ``traceview`` under the names of
``naming.py``, and costs next to nothing when no profiler is attached. A range that is made once may be entered any
number of times, nested and from several threads.

**Payload.** NVTX carries one plain number with a range. It is the number of bytes that the range moves (a signed
64-bit integer, the column ``int64Value`` of an Nsight Systems export), and absent when ``n_bytes`` is not given; the
layer needs none, because it is in the name. This is how a reader learns the bytes of a load that a kernel makes, which
leaves no copy behind. A structured payload could carry both, but it needs NumPy, costs more for every range, and older
exports drop it.

**Coroutines and generators.** A decorated coroutine function, generator or asynchronous generator gets an NVTX
start/end range from its first step to its end, because push/pop ranges of one thread must nest and a suspended function
would break that. What other work the same thread does meanwhile lies inside the range as well.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from . import naming
from .calls import ranged, refuse_what_is_no_function
from .domain import is_live, traceview_domain

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

P = ParamSpec("P")
F = TypeVar("F", bound="Callable[..., Any]")

REMEMBERED_RANGES = 4096
"""How many different ranges of a kind are kept ready; beyond that the least recently used is made anew (about 2 us)."""


class Range:
    """One named NVTX range: around a ``with`` block, or around each call of the function that it decorates.

    ``push()`` opens it on this thread and ``pop()`` closes the thread's innermost range, for code that cannot use
    ``with``; every push needs its pop on the same thread.
    """

    __slots__ = ("_attributes", "_domain", "n_bytes", "name", "pop", "push")

    push: Callable[[], None]
    pop: Callable[[], None]

    def __init__(self, domain: Any, name: str, n_bytes: int | None) -> None:
        self.name = name
        self.n_bytes = n_bytes
        self._domain = domain
        self._attributes = domain.get_event_attributes(name, payload=n_bytes)
        self.push = functools.partial(domain.push_range, self._attributes)
        self.pop = domain.pop_range

    def __enter__(self) -> Range:
        self.push()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pop()

    def __call__(self, function: F) -> F:
        """Return ``function`` with this range around each call; coroutines and generators as the module says.

        Raises TypeError for what is no function: a class, a property, an object that can be called.
        """
        refuse_what_is_no_function(function)
        return cast("F", ranged(function, lambda args, kwargs: self, fixed=self))

    def start(self) -> int:
        """Open a range that need not nest; returns the number that ``end`` takes."""
        return int(self._domain.start_range(self._attributes))

    def end(self, started: int) -> None:
        """Close the range that ``start`` opened."""
        self._domain.end_range(started)


class SilentRange(Range):
    """A range when nobody listens: enters, leaves and decorates without doing anything."""

    __slots__ = ()

    def __init__(self, name: str, n_bytes: int | None) -> None:
        self.name = name
        self.n_bytes = n_bytes
        self.push = self.pop = _nothing

    def __enter__(self) -> SilentRange:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def __call__(self, function: F) -> F:
        """Return ``function`` itself. Raises TypeError where a range that is heard would."""
        refuse_what_is_no_function(function)
        return function

    def start(self) -> int:
        """Return 0."""
        return 0

    def end(self, started: int) -> None:
        """Do nothing."""


def _nothing() -> None:
    pass


def _remembered(make: Callable[P, Range]) -> Callable[P, Range]:
    return cast("Callable[P, Range]", functools.lru_cache(maxsize=REMEMBERED_RANGES)(make))


@_remembered
def named(name: str, n_bytes: int | None = None) -> Range:
    """Return the range with any name; ``n_bytes`` is its payload. Raises TypeError, ValueError for what is no size."""
    payload = None if n_bytes is None else _checked_size(n_bytes)
    domain = traceview_domain()
    return Range(domain, name, payload) if is_live(domain) else SilentRange(name, payload)


@_remembered
def forward(number: int | None = None) -> Range:
    """Return the range around one pass over the layers; a number below zero marks a warm-up pass."""
    if number is None:
        return named("forward")
    return named(naming.forward_name(_whole(number, "a forward's number", "@forward()")))


@_remembered
def load(layer: int, n_bytes: int | None = None) -> Range:
    """Return the range around submitting the load of ``layer``, which moves ``n_bytes``. Layers count from 0."""
    return named(naming.load_name(_checked(layer)), n_bytes)


@_remembered
def compute(layer: int, n_bytes: int | None = None) -> Range:
    """Return the range around submitting the compute of ``layer``. Layers count from 0."""
    return named(naming.compute_name(_checked(layer)), n_bytes)


@_remembered
def storage_read(n_bytes: int | None = None) -> Range:
    """Return the range around reading ``n_bytes`` from storage into host memory."""
    return named(naming.STORAGE_READ, n_bytes)


@_remembered
def stage(n_bytes: int | None = None) -> Range:
    """Return the range around copying ``n_bytes`` that storage delivered into the registered host pool."""
    return named(naming.STAGE, n_bytes)


def mark(text: str) -> None:
    """Write one NVTX mark with ``text`` in domain ``traceview``; does nothing when nobody listens."""
    domain = traceview_domain()
    if is_live(domain):
        domain.mark(domain.get_event_attributes(text))


def _checked(layer: int) -> int:
    number = _whole(layer, "a layer", "@load(3)")
    if number < 0:
        raise ValueError(f"layers count from 0, got {layer}: a range named so would not be read as a layer")
    return number


def _whole(value: int, what: str, example: str) -> int:
    """Return ``value`` as a plain int; True, 1.0 and a NumPy 1 are one key of the remembered ranges, and one name."""
    try:
        return operator.index(value)
    except TypeError:
        hint = f": as a decorator it is written {example}" if callable(value) else ""
        raise TypeError(f"{what} is a whole number, got {_shown(value)}{hint}") from None


def _checked_size(n_bytes: int) -> int:
    try:
        # sizes that were computed as floats are cut to whole bytes
        size = int(n_bytes) if isinstance(n_bytes, float) else operator.index(n_bytes)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"n_bytes is a number of bytes, got {_shown(n_bytes)}") from None
    if size < 0:
        raise ValueError(f"n_bytes must not be negative, got {n_bytes}")
    if size >= 1 << 63:
        raise ValueError(f"n_bytes must fit into 63 bits, got {n_bytes}")
    return size


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | float | None) else f"a {type(value).__name__}"
