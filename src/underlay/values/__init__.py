"""Values that every layer uses: byte ranges, Parquet's enumerations."""
