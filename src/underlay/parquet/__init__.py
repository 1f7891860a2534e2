"""Parquet metadata, read without a Parquet library and written byte for byte: footers, schemas, bloom filters."""
