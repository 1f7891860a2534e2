"""Derives what a SQL condition implies for its columns, such as `year(ts) = 2024` for `ts`, from DuckDB's syntax
tree.
"""
