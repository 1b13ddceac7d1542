"""One HTML file that needs nothing else: styles, charting library, scripts and data inside, the network forbidden."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from traceview import __version__
from traceview.render.html_blocks import escaped
from traceview.render.palette import BOX_COLOURS, CATEGORY_COLOURS, CHANGE_COLOURS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SCRIPTS = ("format.js", "page.js", "charts.js", "timeline.js", "start.js")
_IN_SCRIPTS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def document(title: str, body: Sequence[str], data: Mapping[str, Any]) -> str:
    """Return a whole page; ``title`` is text, ``body`` HTML, ``data`` what the charts on it draw (none: no scripts).

    Scripts run only where their hash is the one written here, and nothing may be fetched, so that a page can be opened
    from disk or from a link without trusting it.
    """
    scripts, styles = (asset("echarts/echarts.min.js"), _own_scripts()) if data else (), _styles()
    allowed = " ".join(_hash(script) for script in scripts) or "'none'"
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(styles)} 'unsafe-hashes'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return "".join(
        (
            "<!doctype html>\n",
            '<html lang="en" class="no-script"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f'<meta name="generator" content="traceview {__version__}">',
            f"<title>{escaped(title)}</title>\n<style>{styles}</style></head>\n<body>",
            *body,
            _footer(charts=bool(data)),
            f'<script type="application/json" id="chart-data">{embedded(data)}</script>\n' if data else "",
            *(f"<script>{script}</script>\n" for script in scripts),
            "</body></html>\n",
        )
    )


def embedded(data: object) -> str:
    """Return data as JSON that can stand inside a script element: ASCII, and no character that HTML could read."""
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":")).translate(_IN_SCRIPTS)


@cache
def asset(name: str) -> str:
    """Return the text of a file under ``assets``."""
    return resources.files("traceview.render").joinpath("assets", name).read_text(encoding="utf-8")


def library() -> dict[str, str]:
    """Return name, version, licence and SHA-256 of the charting library."""
    facts: dict[str, str] = json.loads(asset("echarts.json"))
    return facts


def _own_scripts() -> str:
    inner = "\n".join(asset(name) for name in _SCRIPTS)
    return f'"use strict";\n(() => {{\n{inner}\n}})();'


def _styles() -> str:
    swatches = "".join(f".c-{name}{{background:{colour}}}" for name, colour in CATEGORY_COLOURS.items())
    boxes = "".join(f".b-{name}{{background:{colour}}}" for name, colour in BOX_COLOURS.items())
    frames = "".join(f".{verdict}{{border-color:{colour}}}" for verdict, colour in CHANGE_COLOURS.items())
    return asset("page.css") + swatches + boxes + frames


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _footer(*, charts: bool) -> str:
    facts = library()
    drawn = f" Charts: {escaped(facts['name'])} {facts['version']} ({escaped(facts['license'])})." if charts else ""
    return (
        f"<footer><p>Made by traceview {__version__}.{drawn} This page loads nothing from the network.</p></footer>\n"
    )
