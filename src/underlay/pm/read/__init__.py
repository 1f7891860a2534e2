"""Decodes rows of a Parquet file through its sidecar alone."""
