"""Segments: the entries of many files as arrays, stored in pieces; written, widened, filtered and merged."""
