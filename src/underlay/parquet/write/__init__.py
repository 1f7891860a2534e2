"""Parquet files that mislead no reader, and bloom filters."""
