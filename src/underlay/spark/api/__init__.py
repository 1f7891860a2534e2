"""What users call on Spark: sessions, reads, writes, ingests, versions and explanations."""
