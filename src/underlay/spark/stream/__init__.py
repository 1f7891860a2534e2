"""Structured Streaming: streams into tables exactly once, and out of them."""
