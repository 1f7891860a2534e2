"""A snapshot as a pyarrow dataset, into which Arrow, DuckDB and Polars push filters."""
