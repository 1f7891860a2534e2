"""`underlay ingest`: once, watching, or as a dry run."""
