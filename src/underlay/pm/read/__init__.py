"""Rows of a Parquet file decoded through its sidecar alone."""
