"""The source tree: every input ever ingested, so that each is ingested once."""
