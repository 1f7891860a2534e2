"""A table's columns: types, fields with ids, how they are stored, and what they are in Arrow and in SQL."""
