"""Measures imports of tables of other systems beside what these systems do with the same files."""
