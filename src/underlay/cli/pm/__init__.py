"""`underlay pm`: sidecars of single Parquet files."""
