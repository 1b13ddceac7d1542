"""``python -m traceview``, and what the installed ``traceview`` calls."""

from traceview.signals import leave_at_once


def main() -> None:
    """Run the command line, importing it only when an interrupt no longer ends in a traceback."""
    leave_at_once()
    from traceview.cli import run

    run()


if __name__ == "__main__":
    main()
