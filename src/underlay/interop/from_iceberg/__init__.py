"""Reads tables of Iceberg: metadata, manifests and deleted rows, from a folder or a REST catalog."""
