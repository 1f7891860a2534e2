"""Rows to new files of a table: sorted, split by partition, written with entries and sidecars."""
