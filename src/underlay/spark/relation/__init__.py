"""A version as a DataFrame that the Parquet reader of Spark reads."""
