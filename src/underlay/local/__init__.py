"""Tables for engines in this process: pyarrow datasets and SQL on DuckDB."""
