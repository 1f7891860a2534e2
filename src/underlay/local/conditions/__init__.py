"""Any SQL condition on one row as `scan(where=)` takes it: what of it prunes, and DuckDB for the rest of the rows."""
