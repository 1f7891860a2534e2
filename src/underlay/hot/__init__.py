"""Hot partitions: local Parquet files that grow in place, are read without locks, and become files of a table."""
