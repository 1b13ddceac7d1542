"""Everything that a page of a report draws and the report itself does not hold: timelines, rates by size, ceilings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from traceview.analysis.copy_rates import measure_rates
from traceview.analysis.links import link_ceilings
from traceview.analysis.timeline import worst_and_median
from traceview.analysis.timelines import forward_timelines, trace_timeline

if TYPE_CHECKING:
    from traceview import report
    from traceview.analysis.copy_rates import CopyRates
    from traceview.analysis.forwards import ForwardOptions
    from traceview.analysis.links import Ceiling
    from traceview.analysis.timeline import Timeline
    from traceview.model import Trace


@dataclass(frozen=True)
class Drawings:
    """What the charts of one report draw; empty where the trace has nothing of the kind."""

    timelines: tuple[Timeline, ...] = ()
    """the worst and the median forward, or the whole trace where no forward was measured"""
    rates: tuple[CopyRates, ...] = ()
    ceilings: tuple[Ceiling, ...] = ()


def median_timeline(trace: Trace, options: ForwardOptions, made: report.Report) -> Timeline | None:
    """Return the timeline of the median forward, or of the whole trace without one; None where nothing ran."""
    median = forward_timelines(trace, options, worst_and_median(made.forwards)[-1:])
    return median[0] if median else trace_timeline(trace)


def collect_drawings(trace: Trace, options: ForwardOptions, made: report.Report) -> Drawings:
    """Return the drawings for the report ``made`` of a trace; ``options`` are those that it was made with."""
    timelines = forward_timelines(trace, options, worst_and_median(made.forwards))
    if not timelines:
        whole = trace_timeline(trace)
        timelines = (whole,) if whole else ()
    return Drawings(timelines, measure_rates(trace), link_ceilings(trace))
