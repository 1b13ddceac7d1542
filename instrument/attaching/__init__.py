"""Gives functions of a program ranges without touching its code."""
