"""Reads the rows of a plan by exact byte ranges."""
