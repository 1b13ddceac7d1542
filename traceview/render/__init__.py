"""Lays a report out as text, JSON or Markdown."""
