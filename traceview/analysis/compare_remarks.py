"""What makes the times of two sides differ without a change of the program, as far as the traces tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from traceview.analysis.compare import Row, Side
    from traceview.analysis.compare_measures import Key
    from traceview.analysis.compare_setting import Setting

KERNELS_DIFFER = 0.03
"""From this share on, a difference in the time of the same kernels is worth a remark."""

_LONG = 0.1
"""Share of the kernels' time from which a kernel has to agree with the others"""


def find_remarks(sides: tuple[Side, Side], rows: Sequence[Row], clocks: Mapping[int, float]) -> tuple[str, ...]:
    """Return what a reader should know before believing the differences; ``clocks`` is the share put down to them."""
    base, new = sides
    stacks = _call_stacks(base.setting, new.setting)
    return (*_same_capture(base, new), *stacks, *_kernels(rows, any(clocks.values())))


def _same_capture(base: Side, new: Side) -> Iterator[str]:
    """Yield a line where every value of a capture of one side is that of a capture of the other."""
    before, after = ({_values_of(side, run) for run in range(len(side.paths))} - {()} for side in (base, new))
    if before & after:
        yield "both sides hold the same capture, so this tells nothing about a change"


def _values_of(side: Side, run: int) -> tuple[frozenset[tuple[Key, float]], ...]:
    return tuple(frozenset(sample.values.items()) for sample in side.samples if sample.run == run)


def _call_stacks(base: Setting, new: Setting) -> Iterator[str]:
    if base.call_stacks is None or new.call_stacks is None or base.call_stacks == new.call_stacks:
        return
    side = "base" if base.call_stacks else "new"
    yield f"only the {side} side was captured with call stacks, which cost host time at every call"


def _kernels(rows: Sequence[Row], put_down: bool) -> Iterator[str]:
    """Yield a line where long kernels are others, or where the same ones take more, or less, time on the new side."""
    kernels = [row for row in rows if row.measure in ("kernel_ns", "kernel_call_ns")]
    gone, come = _only_on(kernels, "base"), _only_on(kernels, "new")
    if gone or come:
        told = [*(f"{one} only on the base side" for one in gone), *(f"{one} only on the new side" for one in come)]
        yield f"not the same kernels run, which alone can change times: {', '.join(told)}"
        return
    both = [(row.base.median, row.new.median) for row in kernels if row.base and row.new and row.base.median]
    total = sum(base for base, _ in both)
    long = [(base, new) for base, new in both if base >= _LONG * total]
    if not long:
        return
    share = sum(new - base for base, new in long) / sum(base for base, _ in long)
    if abs(share) >= KERNELS_DIFFER and all((new > base) == (share > 0) for base, new in long):
        how = f"{100 * abs(share):.0f} % {'more' if share > 0 else 'less'} time"
        not_counted = ", so that much of compute and makespan is not counted" if put_down else ""
        yield f"the same kernels take {how} on the new side: clocks, power or what they work on differ{not_counted}"


def _only_on(kernels: Sequence[Row], side: str) -> list[str]:
    """Return the names of long kernels that the other side does not run; none where it runs no kernel at all."""
    other = "new" if side == "base" else "base"
    here = [(row.subject, spread.median, getattr(row, other)) for row in kernels if (spread := getattr(row, side))]
    if not any(getattr(row, other) for row in kernels):
        return []
    total = sum(median for _, median, _ in here)
    return [_short(name) for name, median, there in here if there is None and median >= _LONG * total]


def _short(name: str) -> str:
    """Return a kernel's name without return type, namespaces, template arguments and parameters."""
    bare = name.removeprefix("void ").partition("<")[0].partition("(")[0]
    return bare.rpartition("::")[2] or name[:60]
