"""Lays a report out as text, JSON, Markdown or HTML; each renderer is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from traceview.report import Report


def _text(report: Report, **options: Any) -> str:
    from traceview.render.text import render

    return render(report, **options)


def _json(report: Report, **options: Any) -> str:
    from traceview.render.json import render

    return render(report, **options)


def _markdown(report: Report, **options: Any) -> str:
    from traceview.render.markdown import render

    return render(report, **options)


def _html(report: Report, **options: Any) -> str:
    from traceview.render.html import render

    return render(report, **options)


RENDERERS: dict[str, Callable[..., str]] = {"text": _text, "json": _json, "markdown": _markdown, "html": _html}
"""By format, the function that turns a report into a string; options are those of that module's ``render``."""
