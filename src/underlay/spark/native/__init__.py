"""Adopts files that Spark's own Parquet writer wrote."""
