"""``python -m instrument.overhead``: what one range costs, beside bare ``nvtx`` and ``torch.cuda.nvtx``.

Run it as it is, and once more behind ``nsys profile --trace=nvtx``: the cost with a profiler is the larger one. Each
row is the time to open and close one range around nothing, the least of several rounds, less that of the bare loop. The
comparisons are like for like, and each row names the one it belongs to:

- ``made per call``: the text of the range differs from call to call, as a layer's number does;
- ``made once``: one range object entered again and again;
- ``decorator``: one decorated function called again and again, the call itself included.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
import nvtx

from instrument import ranges
from instrument.domain import is_live, traceview_domain
from instrument.naming import DOMAIN, load_name

if TYPE_CHECKING:
    from collections.abc import Callable

    Ways = dict[tuple[str, str], Callable[[range], None]]

LAYERS = 32
N_BYTES = 64 << 20
ROUNDS = 7
MANNERS = ("made per call", "made once", "decorator")


@dataclass(frozen=True)
class Cost:
    """What one range costs: ``ns`` per open and close, and its ``ratio`` to ``nvtx.annotate`` in the same ``manner``.

    The ratio is None when this profiler takes the one and not the other.
    """

    name: str
    manner: str
    ns: float
    ratio: float | None


@dataclass(frozen=True)
class Measurement:
    """All costs; ``listening`` tells whether a profiler took the ranges; ``unavailable`` maps a name to the reason."""

    listening: bool
    costs: tuple[Cost, ...]
    unavailable: dict[str, str]


def measure(calls: int = 20000) -> Measurement:
    """Measure every way to name a range with ``calls`` ranges a round."""
    unavailable: dict[str, str] = {}
    ways = {**_bare_per_call(), **_bare_once(), **_own_ways()}
    try:
        ways["torch.cuda.nvtx.range", "made per call"] = _torch_way()
    except (ImportError, RuntimeError) as error:
        unavailable["torch.cuda.nvtx.range"] = " ".join(str(error).split())
    times = _times(ways, calls)
    listening = is_live(traceview_domain())
    comparable = listening == is_live(nvtx.get_domain(DOMAIN))
    if not comparable:
        unavailable["ratios"] = "bare nvtx finds no listener in this profiler, so it writes nothing and costs less"
    bare = {manner: times["nvtx.annotate", manner] for manner in MANNERS}
    costs = tuple(
        Cost(name, manner, ns, ns / bare[manner] if comparable else None) for (name, manner), ns in times.items()
    )
    return Measurement(listening, costs, unavailable)


def _times(ways: Ways, calls: int) -> dict[tuple[str, str], float]:
    """Return ns per range of each way; the ways take turns, so that a busy moment of the machine hits all of them."""
    least = dict.fromkeys(ways, float("inf"))
    empty = float("inf")
    numbers = range(calls)
    for _ in range(ROUNDS):
        empty = min(empty, _elapsed_ns(_empty, numbers))
        for key, loop in ways.items():
            least[key] = min(least[key], _elapsed_ns(loop, numbers))
    return {key: (spent - empty) / calls for key, spent in least.items()}


def _elapsed_ns(loop: Callable[[range], None], numbers: range) -> int:
    begin = time.perf_counter_ns()
    loop(numbers)
    return time.perf_counter_ns() - begin


def _empty(numbers: range) -> None:
    for _ in numbers:
        pass


def _bare_per_call() -> Ways:
    def annotate(numbers: range) -> None:
        for number in numbers:
            with nvtx.annotate(f"load layer {number % LAYERS}", domain=DOMAIN, payload=N_BYTES):
                pass

    def push(numbers: range) -> None:
        for number in numbers:
            nvtx.push_range(f"load layer {number % LAYERS}", domain=DOMAIN, payload=N_BYTES)
            nvtx.pop_range(domain=DOMAIN)

    return {("nvtx.annotate", "made per call"): annotate, ("nvtx.push_range", "made per call"): push}


def _bare_once() -> Ways:
    once = nvtx.annotate(load_name(3), domain=DOMAIN, payload=N_BYTES)
    domain = nvtx.get_domain(DOMAIN)
    attributes = domain.get_event_attributes(load_name(3), payload=N_BYTES)
    function = once(_nothing)

    def annotate(numbers: range) -> None:
        for _ in numbers:
            with once:
                pass

    def push(numbers: range) -> None:
        for _ in numbers:
            domain.push_range(attributes)
            domain.pop_range()

    def call(numbers: range) -> None:
        for _ in numbers:
            function()

    return {
        ("nvtx.annotate", "made once"): annotate,
        ("nvtx.Domain.push_range", "made once"): push,
        ("nvtx.annotate", "decorator"): call,
    }


def _nothing() -> None:
    pass


def _own_ways() -> Ways:
    once = ranges.load(3, N_BYTES)

    function = once(_nothing)

    def load(numbers: range) -> None:
        for number in numbers:
            with ranges.load(number % LAYERS, N_BYTES):
                pass

    def load_once(numbers: range) -> None:
        for _ in numbers:
            with once:
                pass

    def call(numbers: range) -> None:
        for _ in numbers:
            function()

    return {
        ("instrument load(layer, n_bytes)", "made per call"): load,
        ("instrument load(layer, n_bytes)", "made once"): load_once,
        ("instrument load(layer, n_bytes)", "decorator"): call,
    }


def _torch_way() -> Callable[[range], None]:
    import torch

    with torch.cuda.nvtx.range("probe"):
        pass

    def torch_range(numbers: range) -> None:
        for number in numbers:
            with torch.cuda.nvtx.range(f"load layer {number % LAYERS}"):
                pass

    return torch_range


def as_text(measured: Measurement) -> str:
    """Return the measurement as a small table."""
    heard = "a profiler takes the ranges" if measured.listening else "no profiler: the ranges go nowhere"
    lines = [heard, f"{'range':34}{'manner':16}{'ns':>8}{'x nvtx':>8}"]
    for cost in measured.costs:
        ratio = "-" if cost.ratio is None else f"{cost.ratio:.2f}"
        lines.append(f"{cost.name:34}{cost.manner:16}{cost.ns:8.0f}{ratio:>8}")
    lines += [f"{name:34}unavailable: {reason}" for name, reason in measured.unavailable.items()]
    return "\n".join(lines)


@click.command()
@click.option("--calls", type=click.IntRange(100), default=20000, show_default=True, help="Ranges a round.")
@click.option("--json", "as_json", is_flag=True, help="Print the costs as JSON.")
def overhead(calls: int, as_json: bool) -> None:
    """Measure what one range costs, beside bare nvtx and torch.cuda.nvtx."""
    measured = measure(calls)
    shown: Any = json.dumps(asdict(measured)) if as_json else as_text(measured)
    click.echo(shown)


if __name__ == "__main__":
    overhead(prog_name="python -m instrument.overhead")
