"""Rows as bytes: values as text by their types, and JSON, NDJSON, CSV, Arrow and Parquet of them, batch by batch."""
