"""Writes Parquet files that are safe for every reader, and bloom filters."""
