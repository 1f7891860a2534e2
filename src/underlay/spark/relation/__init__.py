"""A version as a DataFrame that Spark's own Parquet reader reads."""
