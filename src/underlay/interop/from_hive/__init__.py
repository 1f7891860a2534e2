"""Reads folders of Parquet files with partitions in their paths, as Hive and Spark write them."""
