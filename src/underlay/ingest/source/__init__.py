"""Inputs: expanding patterns, pinned reads, formats and compression."""
