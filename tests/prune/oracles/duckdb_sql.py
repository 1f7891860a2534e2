"""What DuckDB's versions say differently."""

from __future__ import annotations

import re

import duckdb

IS_DUCKDB_1 = duckdb.__version__.startswith("1.")
_BYTES = re.compile(r"\bX'([0-9A-Fa-f]*)'")


def duckdb_sql(text):
    """The condition with its bytes as every version reads them: to DuckDB 1 `X'80'` is text."""
    return _BYTES.sub(r"unhex('\1')", text)
