"""Rows as frames of libraries that may not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from underlay.errors import Unsupported

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # optional, and without types
    import polars as pl


def check_installed(library: str) -> None:
    """Raise Unsupported unless a library can be imported: before rows are read for it."""
    from importlib.util import find_spec

    if find_spec(library) is None:
        raise Unsupported(f"{library} is not installed", hint=f"Run pip install {library}, or use to_arrow().")


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """A pandas frame. Raises Unsupported without pandas."""
    check_installed("pandas")
    return table.to_pandas()


def as_polars(table: pa.Table) -> pl.DataFrame:
    """A Polars frame. Raises Unsupported without Polars."""
    check_installed("polars")
    import polars as pl

    frame = pl.from_arrow(table)
    if not isinstance(frame, pl.DataFrame):
        raise TypeError(f"Polars returned a {type(frame).__name__} of a table")
    return frame
