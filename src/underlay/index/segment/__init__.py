"""Segments: the entries of many files as arrays, in pieces, written, widened, chosen from and merged."""
