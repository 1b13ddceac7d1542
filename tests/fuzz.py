"""Fuzz all commands by hand: ``python tests/fuzz.py --minutes 60``.

Damages traces at random (rows, bytes), runs a command on each and judges the outcome. What is found is shrunk, told
once, as an example for ``tests/test_fuzz.py``, and appended to ``--found``. A crash of the interpreter itself leaves
the example in ``--last``.
"""

from __future__ import annotations

import faulthandler
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parent))

from fuzz_mutations import write_damaged
from fuzz_outcomes import CPU_SECONDS, WrongOutcomeError, judge
from fuzz_strategies import Example, examples

_ROUND = 200
"""examples after which a new random seed is drawn"""


def try_example(example: Example) -> int:
    """Run one example in a folder of its own and return the exit code; raises ``WrongOutcomeError`` if it is wrong."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        trace = write_damaged(Path(folder) / "trace.sqlite", example.base, example.changes)
        return judge(trace, example.command).code


@click.command()
@click.option("--minutes", type=float, default=60.0, show_default=True, help="How long.")
@click.option("--first-seed", type=int, default=None, help="Where to begin; else at random.")
@click.option("--found", type=click.Path(path_type=Path), default=Path("fuzz-found.txt"), show_default=True)
@click.option("--last", type=click.Path(path_type=Path), default=Path("fuzz-last.txt"), show_default=True)
def main(minutes: float, first_seed: int | None, found: Path, last: Path) -> None:
    """Fuzz for some minutes; exit 1 where anything was found."""
    number = random.SystemRandom().randrange(1 << 32) if first_seed is None else first_seed
    until, known, codes = time.monotonic() + 60 * minutes, set[str](), Counter[str]()
    while time.monotonic() < until:
        error = _round(number, until, known, codes, last)
        number += 1
        if error is not None:
            known.add(error.signature)
            told = "\n".join([f"seed {number - 1}: {error}", *getattr(error, "__notes__", []), ""])
            click.echo(told)
            with found.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(told + "\n")
    click.echo(f"{sum(codes.values())} runs to seed {number}: {dict(codes)}; {len(known)} faults")
    sys.exit(bool(known))


def _round(number: int, until: float, known: set[str], codes: Counter[str], last: Path) -> WrongOutcomeError | None:
    """Try some examples; return the first new fault, shrunk."""

    @seed(number)
    @settings(
        max_examples=_ROUND,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(example=examples)
    def probe(example: Example) -> None:
        if time.monotonic() > until:
            return
        last.write_text(repr(example), encoding="utf-8", errors="backslashreplace")
        faulthandler.dump_traceback_later(20 * CPU_SECONDS, exit=True)
        try:
            codes[f"exit {try_example(example)}"] += 1
        except WrongOutcomeError as error:
            codes["wrong"] += 1
            if error.signature not in known:
                raise
        finally:
            faulthandler.cancel_dump_traceback_later()

    try:
        probe()
    except WrongOutcomeError as error:
        return error
    return None


if __name__ == "__main__":
    main()
