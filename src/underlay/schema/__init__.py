"""A table's columns: types, fields with ids, names, and how they and their bounds are stored."""
