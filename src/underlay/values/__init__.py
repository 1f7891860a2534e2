"""Values that every layer uses: byte ranges, Parquet's enumerations, mappings that share what did not change."""
