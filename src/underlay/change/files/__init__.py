"""Writes rows as new files of a table: sorted, split by partition, with index entries and sidecars."""
