"""Structured Streaming into tables, exactly once, and out of them."""
