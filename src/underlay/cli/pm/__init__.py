"""`underlay pm`: the sidecars of Parquet files."""
