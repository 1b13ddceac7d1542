"""A headless Chromium for tests of pages: what it logs, what it asks the network for, what it shows."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
DESKTOP, PHONE = 1280, 390


def require_browser() -> None:
    """Skip the calling test, with the reason, where Chromium, its driver or selenium is missing."""
    pytest.importorskip("selenium", reason="the tests of pages need selenium: pip install 'traceview[test]'")
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} here: apt-get install chromium chromium-driver")


@contextmanager
def browser(profile: Path, *, width: int = DESKTOP, dark: bool = False) -> Iterator[Any]:
    """Give a driver whose window has a width in CSS px and prefers light or dark; ``profile`` is a new folder."""
    from selenium.webdriver import Chrome, ChromeOptions
    from selenium.webdriver.chrome.service import Service

    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        yield driver
    finally:
        driver.quit()


def complaints(driver: Any) -> list[str]:
    """Return what the console has said since it was last asked: errors, warnings, breaches of the page's policy."""
    return [entry["message"] for entry in driver.get_log("browser")]


def requests(driver: Any) -> list[str]:
    """Return every address that pages asked for, the page itself included, but for the browser's own pages."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [one["params"] for one in events if one["method"] == "Network.requestWillBeSent"]
    return [one["request"]["url"] for one in asked if not one["documentURL"].startswith("chrome://")]
