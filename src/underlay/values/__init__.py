"""Values that every layer speaks: byte ranges, Parquet's own enumerations."""
