"""A snapshot as a pyarrow dataset; Arrow, DuckDB and Polars push filters into it."""
