"""Columns, partitions and layouts of a table as Iceberg has them, and which of them it cannot have."""
