"""Converts a Parquet footer to a sidecar, byte for byte as QuestDB does."""
