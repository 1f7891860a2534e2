"""Partition transforms, buckets and the sort order: how the rows of a table lie in its files."""
