"""From a Parquet file to its sidecar, byte for byte as QuestDB does it."""
