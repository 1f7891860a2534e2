"""The public functions on Spark: sessions, reads, writes, ingests, versions, explanations."""
