"""Rows that Spark's own Parquet writer writes, and that the table adopts as its files."""
