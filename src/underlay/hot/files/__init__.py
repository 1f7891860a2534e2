"""A partition's files: `data.parquet`, which grows by row groups and footers, and its `_pm`."""
