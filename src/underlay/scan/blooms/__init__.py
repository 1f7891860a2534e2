"""Reads bloom filters from sidecars and files, and drops blocks by them."""
