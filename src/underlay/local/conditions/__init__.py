"""Any SQL condition on one row, as for `scan(where=)`: a predicate that prunes, and DuckDB to filter the remaining
rows.
"""
