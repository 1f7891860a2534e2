"""Errors inside a scan that an engine runs, for whoever runs the engine. Light: loads no Arrow."""

from __future__ import annotations

from collections.abc import Callable

FailureListener = Callable[[Exception], None]
"""Called with a scan's error before it is raised: engines hide it behind an error of their own."""


class FilterMisread(Exception):
    """DuckDB pushed a filter that differs from the query's meaning. Without pushed filters the query is right."""
