"""Rows written by the Parquet writer of Spark, and adopted as files of the table."""
