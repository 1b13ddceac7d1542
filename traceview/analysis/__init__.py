"""Answers one question about a trace per module; nothing here prints."""
