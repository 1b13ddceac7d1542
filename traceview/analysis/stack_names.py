"""Call stacks as a person reads them: first what was called in the words of its user, then the frames outside of it.

``at::native::_local_scalar_dense_cuda`` under ``THPVariable_item`` is ``.item()``; the driver, the runtime, dispatch
code and the interpreter's own frames say nothing and are left out.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from traceview.model import Ints, NativeFrame, PythonFrame, Stack, Trace

_LOW_MODULE = re.compile(r"libcuda\.|libcudart|libcupti|libnvidia|nsight|nsys|libToolsInjection", re.IGNORECASE)
_LOW_SYMBOL = re.compile(r"(?:__)?cuda[A-Z_]\w*|cu[A-Z]\w*|libcudart_static\w*")
_UNRESOLVED = re.compile(r"0x[0-9a-fA-F]+|\[.*\]|")
_PYTHON_MODULE = re.compile(r"(?:lib)?python[\d.]*\w?(?:\.so[\d.]*)?")
_NOISE = re.compile(
    r"_?_?Py[A-Z_]\w*|_start|__libc_start\w*|start_thread|clone3?|_?main_thread_\w*"  # interpreter, start of a process
    r"|(?:c10|torch)::impl::.*|.*wrap_kernel_functor.*|.*::redispatch|at::_ops::.*"  # dispatch
    r"|(?:pybind11|std)::.*|.*::operator\(\)|.*cpp_function.*"
)
_SCOPED = re.compile(r"(?:\w+::)*(?P<name>THC?P\w+)")
_OPERATOR = re.compile(r"at::_ops::(?P<op>\w+)::(?:call|redispatch)|at::native::(?P<native>\w+)")

_METHODS = {
    "item": ".item()",
    "tolist": ".tolist()",
    "bool_scalar": "bool()",
    "is_nonzero": "bool()",
    "float_scalar": "float()",
    "integral_scalar": "int()",
    "index_scalar": "int()",
    "complex_scalar": "complex()",
    "cpu": ".cpu()",
    "cuda": ".cuda()",
    "to": ".to()",
    "numpy": ".numpy()",
    "copy_": ".copy_()",
    "getitem": "tensor[...]",
    "setitem": "tensor[...] = ...",
    "_unique2": "unique()",
}
"""What a Python binding of a tensor (``THPVariable_...``) is in a program's own words."""

_MODULE_FUNCTIONS = {
    "cudaSynchronize": "torch.cuda.synchronize()",
    "cudaSynchronize_wrap": "torch.cuda.synchronize()",
    "emptyCache": "torch.cuda.empty_cache()",
    "synchronize": "synchronize()",
    "query": "query()",
}
_OBJECTS = {"THCPStream": "Stream.", "THCPEvent": "Event."}

_WAITING = {
    "_local_scalar_dense": ".item()",
    "item": ".item()",
    "is_nonzero": "bool()",
    "nonzero": "nonzero()",
    "masked_select": "masked_select()",
    "_unique2": "unique()",
    "unique_dim": "unique()",
    "unique_consecutive": "unique_consecutive()",
    "repeat_interleave": "repeat_interleave()",
    "bincount": "bincount()",
    "equal": "equal()",
}
"""Operators that wait for the device, because the host needs their value or the size of their result."""

_READS = frozenset({".item()", ".tolist()", "bool()", "float()", "int()", "complex()"})
"""Calls whose purpose is the value on the host."""

_INSTALLED = re.compile(r".*/(?:site|dist)-packages/(?P<inside>.+)")


def written_stack(stack: Stack) -> tuple[str, ...]:
    """Return a stack as strings, innermost first: the operator, compiled frames, Python as ``function (file:line)``.

    The operator comes first where one is recognised: ``.item()``, ``nonzero() in tensor[...]``. Files of installed
    packages are named from the package on.
    """
    frames = above_runtime(stack.native)
    operator = operator_name([short_symbol(frame.symbol) for frame in frames])
    native = dict.fromkeys(_telling(frames))
    python = _without_repeats(python_frame(frame) for frame in stack.python)
    return (*([operator] if operator else []), *native, *python)


def written_stacks(trace: Trace) -> tuple[Ints, tuple[tuple[str, ...] | None, ...]]:
    """Return the distinct written stacks of a trace, the last one None, and which of them each of its stacks is.

    The array has one more entry than there are stacks, so that the stack -1 of a call without one finds the None.
    """
    texts: dict[tuple[str, ...], int] = {}
    index = [texts.setdefault(written_stack(stack), len(texts)) for stack in trace.stacks]
    return np.array([*index, len(texts)], dtype=np.int64), (*texts, None)


def above_runtime(native: Sequence[NativeFrame]) -> Sequence[NativeFrame]:
    """Return the frames outside the driver, the runtime and the profiler."""
    inside = 0
    for position, frame in enumerate(native):
        symbol = short_symbol(frame.symbol)
        if _LOW_MODULE.search(frame.module) or _LOW_SYMBOL.fullmatch(symbol):
            inside = position + 1
        elif not _UNRESOLVED.fullmatch(symbol):
            break
    return native[inside:]


def operator_name(symbols: Sequence[str]) -> str | None:
    """Return what was called in the words of its user, given short symbols innermost first; None if nothing tells."""
    waiting = next((word for symbol in symbols if (word := _waiting(symbol))), None)
    called = next((word for symbol in symbols if (word := _bound(symbol))), None)
    if called is None or waiting is None or waiting == called or called in _READS:
        return called or waiting
    return f"{waiting} in {called}"


def short_symbol(symbol: str) -> str:
    """Return a demangled name without parameters, template arguments, return type and anonymous namespaces."""
    text = symbol.replace("(anonymous namespace)::", "").replace("{lambda()", "{lambda")
    text = re.sub(r"operator(?:\(\)|<<|>>|[<>]=?|->)", _spelled, text)
    kept, depth = [], 0
    for character in text:
        if character in "<({[":
            depth += 1
        elif character in ">)}]":
            depth = max(depth - 1, 0)
        elif not depth:
            kept.append(character)
    plain = "".join(kept).removesuffix(" const").strip()
    # what follows a lambda or a parameter list is inside the function
    plain = re.sub(r"(?:::)+(?:operator call)?$", "", re.sub(r"::(?:::)+", "::", plain))
    return plain.rpartition(" ")[2] or symbol


def python_frame(frame: PythonFrame) -> str:
    """Return a line of Python as ``function (file:line)``."""
    installed = _INSTALLED.fullmatch(frame.file)
    return f"{frame.function} ({installed['inside'] if installed else frame.file}:{frame.line})"


def _spelled(found: re.Match[str]) -> str:
    return "operator call" if found.group() == "operator()" else "operator"


def _telling(frames: Iterable[NativeFrame]) -> Iterator[str]:
    """Yield short names of the frames that say something to a person."""
    for frame in frames:
        symbol = short_symbol(frame.symbol)
        if _PYTHON_MODULE.fullmatch(PurePosixPath(frame.module).name):
            continue
        # what Python calls is what the operator is named by
        if not _bound(symbol) and not any(pattern.fullmatch(symbol) for pattern in (_UNRESOLVED, _NOISE)):
            yield symbol


def _waiting(symbol: str) -> str | None:
    found = _OPERATOR.match(symbol)
    if not found:
        return None
    name = (found["op"] or found["native"]).removesuffix("_cuda")
    return _WAITING.get(name)


def _bound(symbol: str) -> str | None:
    """Return what a function that Python calls is there for, or None for any other function."""
    found = _SCOPED.fullmatch(symbol)
    if not found:
        return None
    # split by hand: an expression would try every underscore of a name
    owner, _, function = found["name"].partition("_")
    if not function:
        return None
    if owner == "THPVariable":
        return _METHODS.get(function, f"{function}()")
    return _OBJECTS.get(owner, "") + _MODULE_FUNCTIONS.get(function, f"{function}()")


def _without_repeats(frames: Iterable[str]) -> Iterator[str]:
    before = None
    for frame in frames:
        if frame != before:
            yield frame
        before = frame
