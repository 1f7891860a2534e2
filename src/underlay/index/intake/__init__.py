"""From a Parquet footer to entries of the index: does the file fit, and which statistics may be believed."""
