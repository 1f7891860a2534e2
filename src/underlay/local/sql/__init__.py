"""SQL over the tables of a lake, on DuckDB in this process."""
