"""Runs an ingest: batch by batch, as a dry run, or watching for new sources; and records the run."""
