"""What goes wrong inside a scan that an engine runs, for whoever asked the engine. Light: it loads no Arrow."""

from __future__ import annotations

from collections.abc import Callable

FailureListener = Callable[[Exception], None]
"""Is told what a scan raises before it is raised: engines hide it behind an error of their own."""


class FilterMisread(Exception):
    """DuckDB handed over a filter that does not mean what the query says. Without filters the query is right."""
