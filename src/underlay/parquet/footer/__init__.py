"""Footers as typed values: the schema, the column chunks, checks, minimal footers and spliced ones."""
