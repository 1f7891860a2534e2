"""`underlay ingest`: once, as a dry run, or watching for new sources."""
