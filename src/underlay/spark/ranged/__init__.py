"""The ranged reader, for versions that Spark's own Parquet reader cannot read."""
