"""Reads sealed files and hot partitions of a table as one consistent snapshot, without a lock."""
