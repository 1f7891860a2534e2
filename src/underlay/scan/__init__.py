"""Rows of a plan, read by exact byte ranges."""
