"""Parquet files that others wrote, taken into a table where they are."""
