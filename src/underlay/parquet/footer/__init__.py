"""Footers as typed values: schema, column chunks, checks, minimal footers, spliced footers."""
