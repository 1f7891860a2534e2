"""Reads tables of DuckLake: its catalog is tables of SQL, in a DuckDB or SQLite file."""
