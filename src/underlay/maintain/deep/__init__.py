"""Checks files byte by byte: footers and rows against the index."""
