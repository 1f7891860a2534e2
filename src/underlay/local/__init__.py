"""Engines in this process: pyarrow datasets, and SQL on DuckDB."""
