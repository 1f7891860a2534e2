"""The ranged reader, for versions that Spark's Parquet reader cannot read correctly."""
