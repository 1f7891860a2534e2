"""Adds existing Parquet files to a table without copying them, and removes them again."""
