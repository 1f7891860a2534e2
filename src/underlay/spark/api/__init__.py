"""The functions that users call on Spark: sessions, reads, writes, ingests, versions and explanations."""
