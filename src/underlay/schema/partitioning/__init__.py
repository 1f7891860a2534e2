"""Partition transforms, buckets and sort order: how a table's rows are laid out in files."""
