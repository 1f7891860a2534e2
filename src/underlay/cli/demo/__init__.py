"""`make demo`: ingests months of taxi trips on Spark and queries them."""
