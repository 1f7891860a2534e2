"""The source tree: every input that was ever ingested, so that it is ingested once."""
