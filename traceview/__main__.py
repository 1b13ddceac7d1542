"""``python -m traceview``."""

from traceview.cli import run

run()
