"""The ranged reader: versions that the Parquet reader of Spark cannot read by itself."""
