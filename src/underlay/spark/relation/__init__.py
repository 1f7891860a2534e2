"""Presents a version as a DataFrame that Spark's Parquet reader reads."""
