"""Makes the pictures of the README from the sample traces: ``python tests/screenshots.py sample_traces/pictures``.

Needs Chromium, its driver and selenium, as the tests of pages do.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import checkout  # noqa: F401
from browser import DESKTOP, PHONE, browser

SAMPLES = Path(__file__).parents[1] / "sample_traces"
BASE, NEW = SAMPLES / "item.sqlite", SAMPLES / "healthy.sqlite"


def main(folder: Path) -> None:
    """Write every picture into ``folder``, over those of the last time."""
    folder.mkdir(exist_ok=True)
    traceview("timeline", BASE, "-o", folder / "timeline_item.png", "--force")
    traceview("timeline", NEW, "-o", folder / "timeline_healthy.png", "--force")
    traceview("plot", "accounting", BASE, "-o", folder / "accounting_item.png", "--force")
    with tempfile.TemporaryDirectory() as made:
        report, diff = Path(made) / "report.html", Path(made) / "diff.html"
        traceview("report", BASE, "--format", "html", "-o", report)
        diff.write_bytes(traceview("diff", BASE, NEW, "--format", "html"))
        for page, width, dark, until, name in (
            (report, DESKTOP, False, "[id^='timeline']", "report.png"),
            (report, DESKTOP, True, "[id^='timeline']", "report_dark.png"),
            (report, PHONE, False, "[id^='timeline'] figure", "report_phone.png"),
            (diff, DESKTOP, False, "#both-forwards", "diff.png"),
        ):
            with browser(Path(made) / name, width=width, dark=dark) as driver:
                driver.get(page.as_uri())
                (folder / name).write_bytes(picture(driver, until))


def traceview(*arguments: object) -> bytes:
    """Run the command and return what it prints."""
    command = [sys.executable, "-m", "traceview", *(str(one) for one in arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def picture(driver: Any, until: str) -> bytes:
    """Return the page from its top to the end of the first element that a selector finds."""
    end = driver.execute_script(
        "return document.querySelector(arguments[0]).getBoundingClientRect().bottom + scrollY + 12", until
    )
    clip = {"x": 0, "y": 0, "width": driver.execute_script("return innerWidth"), "height": end, "scale": 1}
    shot = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
