"""`make demo`: months of taxi trips, ingested on Spark and asked about."""
