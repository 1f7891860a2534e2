"""Encodes rows as JSON, NDJSON, CSV, Arrow and Parquet, batch by batch, and values as text by type."""
