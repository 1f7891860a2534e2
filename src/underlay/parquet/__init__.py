"""Parquet metadata: footers, schemas and bloom filters, read without a Parquet library and written byte for byte."""
