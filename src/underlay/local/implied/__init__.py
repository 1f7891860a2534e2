"""What a SQL condition implies for its columns: `year(ts) = 2024` for `ts`, by DuckDB's own syntax tree and types."""
